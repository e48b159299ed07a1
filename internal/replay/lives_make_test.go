package replay_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/config"

	"replayd/internal/dispatch"
	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/internal/openai"
	"replayd/internal/replay"
	"replayd/internal/scalar"
	"replayd/internal/schedule"
	"replayd/internal/synth"
	"replayd/internal/token"
	"replayd/internal/trace"
)

// prompter is shared by all lives, because reading the words takes longer than a life.
var prompter = sync.OnceValues(func() (*synth.Prompter, error) {
	words, err := token.List("main")
	if err != nil {
		return nil, err
	}
	return synth.New(synth.Options{Words: words, Form: synth.Text})
})

const ms = time.Millisecond

// upTo returns a random duration below n milliseconds.
func (l *life) upTo(n int) time.Duration { return time.Duration(l.rnd.IntN(n)) * ms }

// pass lets a random time below n milliseconds go by. It creates no timer for 0: golang/go#78156.
func (l *life) pass(n int) {
	if d := l.upTo(n); d > 0 {
		<-time.After(d)
	}
}

func (l *life) one(in int) bool { return l.rnd.IntN(in) == 0 }

func newLife(t *testing.T, seed uint64) *life {
	l := &life{T: t, rnd: rand.New(rand.NewPCG(seed, 77))}
	l.closed = l.one(2)
	l.endless = l.one(3)
	l.rows = l.someRows()
	l.options = schedule.Options{
		Pattern: schedule.Pattern{Speed: 1, Arrival: schedule.Exact},
		Repeat:  schedule.Repeat{Mode: schedule.Once},
	}
	if l.endless {
		l.options.Mode, l.options.Align = schedule.Loops, schedule.Start
	}
	switch {
	case l.closed:
		l.options.Arrival = schedule.Concurrency
		l.options.Align = ""
	case l.one(4):
		l.options.Arrival = schedule.Spread
	}
	l.engine = &engine{
		ttft: ms + l.upTo(400), itl: ms + l.upTo(60), closeAfter: l.rnd.IntN(5), wires: map[*wire]struct{}{}, seen: map[string]int{},
	}
	if l.one(4) {
		l.engine.failing = 0.25
	}
	if seed%3 == 2 {
		l.joinRows(rand.New(rand.NewPCG(seed, 78)))
	}
	l.epoch = time.Now().Add(l.upTo(2000))
	l.common = l.someOptions()
	if seed%4 == 3 { // other lives have no bound on waiting requests
		l.waiting = new(dispatch.Waiting)
		l.waiting.Bound(int64(1 + seed%5*600)) // bytes of up to four rows
	}
	return l
}

func (l *life) someRows() []trace.Record {
	rows := make([]trace.Record, 1+l.rnd.IntN(120))
	at := time.Duration(0)
	for i := range rows {
		at += l.upTo(200) * time.Duration(l.rnd.IntN(3))
		rows[i] = trace.Record{Number: i, Offset: at, InputTokens: 4, OutputTokens: 3}
		if i == 0 {
			continue // the first row can always be sent
		}
		if k := l.rnd.IntN(8); k < 4 {
			rows[i].Session = fmt.Sprint("s", k)
			rows[i].Delay = l.upTo(300) * time.Duration(l.rnd.IntN(3))
		}
		switch l.rnd.IntN(30) {
		case 0, 1:
			rows[i].InputTokens = 5000 // over MaxInput, if that is set
		case 2:
			rows[i].Extra = json.RawMessage(`[]`) // not an object, so the message cannot be built
		}
	}
	return rows
}

// joinRows makes graphs of the sessions. A row names any earlier rows as its parents, those of other sessions and rows that are not there
// among them, or comes after the row before it.
func (l *life) joinRows(rnd *rand.Rand) {
	l.graphs = true
	dense := 1 + rnd.IntN(8)
	for i := range l.rows {
		row := &l.rows[i]
		if row.Session == "" || rnd.IntN(8) == 0 {
			continue
		}
		row.After, row.Delay = []trace.Edge{}, 0
		for range rnd.IntN(1 + dense) {
			wait := time.Duration(rnd.IntN(3)/2*rnd.IntN(300)) * ms
			row.After = append(row.After, trace.Edge{Row: max(-1, i-1-rnd.IntN(20)), Wait: wait})
		}
		row.Floating = rnd.IntN(2) == 0

		if len(row.After) > 0 && rnd.IntN(4) == 0 {
			row.Since = time.Duration(rnd.IntN(500)) * ms
		}
	}
}

func (l *life) someOptions() func(*replay.Workload) {
	carry, hold, whole, limit, drop := l.one(3), l.one(2), l.one(4), l.one(2), l.one(4)
	over := []replay.OverLimit{replay.Filter, replay.Clip}[l.rnd.IntN(2)]
	wait := l.upTo(2000) * time.Duration(l.rnd.IntN(3))
	ahead := []scalar.Bytes{1, 4000, 8 << 20}[l.rnd.IntN(3)]
	guard := limits.Guard{ResumeAfter: l.upTo(3000)}
	switch l.rnd.IntN(6) {
	case 0, 1, 2:
		guard.ErrorRatio = 0.3
	case 3:
		guard.ErrorRatio, guard.Waiting = 0.3, 10
	case 4:
		guard.Waiting, guard.KVCacheUsage = 10, 0.9
	}
	if l.one(3) {
		guard.OnMissingMetrics = limits.BlindGo
	}
	var budget limits.Budget
	if l.one(5) {
		budget.RequestsPerMinute = int64(1 + l.rnd.IntN(100))
	}
	var cancel replay.Cancel
	if l.one(4) {
		cancel = replay.Cancel{Ratio: 0.3, After: l.upTo(300)}
	}
	return func(w *replay.Workload) {
		w.History, w.Hold, w.Whole, w.OverLimit, w.MaxWait, w.Prebuild.Bytes = carry, hold, whole, over, wait, ahead
		w.Guard, w.Budget, w.Cancel = guard, budget, cancel
		if drop {
			w.Overload = replay.Drop
		}
		if limit {
			w.MaxInput = 4000
		}
		if guard.Waiting > 0 {
			w.Load = func() (limits.Load, error) {
				l.mu.Lock()
				defer l.mu.Unlock()
				return l.load, l.err
			}
		}
	}
}

// source returns the rows of the life as a trace in memory.
func (l *life) source() schedule.Source {
	return schedule.Source{
		HasTimestamps: true, Last: l.rows[len(l.rows)-1].Offset, Count: len(l.rows),
		Rows: func(from time.Duration) (func() (trace.Record, error), error) {
			i := 0
			for i < len(l.rows) && l.rows[i].Offset < from {
				i++
			}
			return func() (trace.Record, error) {
				if i == len(l.rows) {
					return trace.Record{}, io.EOF
				}
				i++
				return l.rows[i-1], nil
			}, nil
		},
	}
}

// next makes the successor of the latest runner, or the first runner.
func (l *life) next() *lived {
	plan, err := schedule.New(l.source(), l.options)
	if err != nil {
		l.Fatal(err)
	}
	client, err := openai.New(openai.Target{
		Options: openai.Options{
			URL: "http://engine", API: openai.Completions, Output: openai.OutputExact, HTTP: config.DefaultHTTPClientConfig,
			Timeouts: openai.Timeouts{Connect: time.Second, FirstToken: time.Minute, Stall: time.Minute, Total: time.Hour},
		},
		Name: "t", Dial: l.engine.dial, UserAgent: "replayd/test",
	})
	if err != nil {
		l.Fatal(err)
	}
	prompts, err := prompter()
	if err != nil {
		l.Fatal(err)
	}
	r := &lived{
		registry: prometheus.NewRegistry(), client: client, lanes: 1 + l.rnd.IntN(6),
		finished: map[string]report{}, dropped: map[measure.DropReason]int{},
	}
	log := slog.New(slog.DiscardHandler)
	r.target = replay.NewTarget(replay.TargetOptions{Client: client, Named: func(string) {}, Log: log})
	w := replay.Workload{
		Traffic: replay.Traffic{
			Name: "w", Plan: plan, Prompt: prompts, Salt: synth.SaltLoop,
			Sending: replay.Sending{Lanes: r.lanes, Overload: replay.Wait},
		},
		Hooks: replay.Hooks{Observers: []replay.Observer{r}, Dropped: func(why measure.DropReason, n int) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.dropped[why] += n
		}},
		Handover: replay.Handover{Epoch: l.epoch},
		Environment: replay.Environment{
			Client: client, Target: r.target, Log: log, Pacer: replay.NewPacer(replay.NewTimers()), Drain: 30 * time.Second,
			Count: metrics.NewMeter(r.registry).Workload(metrics.Labels{Workload: "w", Target: "t"}, metrics.WorkloadOptions{}),
		},
	}
	l.common(&w)
	w.Waiting = l.waiting
	if n := len(l.runners); n > 0 {
		w.After, w.Begin = l.runners[n-1].Runner, l.begins[n]
	} else if l.one(5) {
		l.warmup = 1 + l.rnd.IntN(5)
		w.Warmup.Requests, w.Warmed = l.warmup, []replay.Observer{warmed{r}}
	}
	r.Runner, r.pacer = replay.New(w), w.Pacer
	return r
}

// warmed observes the requests of the warm-up, which are in no series.
type warmed struct{ *lived }

// Observe implements replay.Observer.
func (w warmed) Observe(r *measure.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finished[r.ID] = report{finished: 1, retried: 1} // warm-up ids are not compared with the series
}
