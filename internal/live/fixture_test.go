package live

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/internal/number"
	"replayd/internal/secret"
)

const ms = time.Millisecond

// A feed is a workload with its counters. It stands in for the runner and the meter.
type feed struct {
	*Workload

	mu    sync.Mutex
	state State
	n     int
}

func newFeed(b *Board, o WorkloadOptions) *feed {
	f := &feed{state: State{
		Ledger: measure.Ledger{Outcomes: map[measure.Outcome]int64{}, Dropped: map[measure.DropReason]int64{}},
		Phase:  Running, TargetUp: true, TargetText: "answers as m",
	}}
	o.State = f.now
	if o.Lanes == 0 {
		o.Lanes = 8
	}
	f.Workload = b.Workload(o)
	return f
}

func (f *feed) now() State {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.state
	s.Ledger.Outcomes, s.Ledger.Dropped = maps.Clone(s.Ledger.Outcomes), maps.Clone(s.Ledger.Dropped)
	return s
}

func (f *feed) change(c func(s *State)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c(&f.state)
}

// member returns a member of an object.
func member(o number.Object, key string) any { return o[slices.Index(o, any(key))+1] }

// end finishes a request that was sent on time and had 11 tokens in two chunks.
func (f *feed) end(o measure.Outcome, ttft, tpot time.Duration, text string) {
	f.n++
	r := request(fmt.Sprintf("%s/7/%d", f.options.Name, f.n), o, ttft, tpot)
	r.Error = secret.Text(text)
	f.change(func(s *State) {
		s.Ledger.Expected++
		s.Ledger.Outcomes[o]++
		if o == measure.OK {
			s.Ledger.PromptTokens += int64(r.Usage.Prompt)
			s.Ledger.OutputTokens += int64(r.Usage.Output)
		}
		if o != measure.Cancelled && o != measure.Aborted {
			s.Ledger.Eligible++
		}
		v := r.Values()
		if good, _ := f.options.SLO.Good(o, &v); good {
			s.Ledger.Good++
		}
	})
	f.Observe(r)
}

func (f *feed) drop(why measure.DropReason, n int64) {
	f.change(func(s *State) {
		s.Ledger.Expected += n
		if why == measure.Overload || why == measure.SessionFailed {
			s.Ledger.Eligible += n
		}
		s.Ledger.Dropped[why] += n
	})
}

// request returns a request that ended now, was 100 µs late and had 100 prompt tokens.
func request(id string, o measure.Outcome, ttft, tpot time.Duration) *measure.Request {
	now := time.Now()
	r := &measure.Request{ID: id, Outcome: o, Usage: measure.Usage{Prompt: 100, Output: 11}}
	r.Timeline = measure.Timeline{Due: now, Ready: now, Write: now.Add(100 * time.Microsecond), End: now}
	if o == measure.OK {
		r.Timeline.Chunks = []time.Duration{ttft, ttft + 10*tpot}
	}
	return r
}

// run runs f in virtual time beside a Board that ticks.
func run(t *testing.T, f func(t *testing.T, b *Board)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{Version: "1.2.3"})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- b.Run(ctx) }()
		synctest.Wait()
		f(t, b)
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// pass lets time pass, with its ticks.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// inMinute returns the number of TTFTs in the last minute.
func (f *feed) inMinute() int64 {
	f.history.mu.Lock()
	defer f.history.mu.Unlock()
	latency := f.history.lastMinute()
	return latency[ttft].count()
}

// told returns the page that a new viewer gets.
func told(b *Board) snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.snapshot()
}
