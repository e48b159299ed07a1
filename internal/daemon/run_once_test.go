package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"replayd/internal/config"
	"replayd/internal/measure"
	"replayd/internal/sim"

	"replayd/test/outside"
)

func TestOnce(t *testing.T) {
	_, url := engine(t, func(o *sim.Options) { o.Faults.Error500 = 1 })
	h, requests := &heard{}, 0
	o := h.options(conf([]config.Target{target("sim", url)}, each("w", "sim", write(t, "trace.jsonl", rows(5)))))
	var l measure.Ledger
	ended := false
	err := Once{
		Options: o, Serve: true, Version: "1.2.3", Started: func(g *Generation) { requests = g.Requests() },
		Ended: func(ledger measure.Ledger, cut error) { l, ended = ledger, cut == nil },
	}.Run(t.Context(), t.Context())
	if l.Expected != 5 || l.Outcomes[measure.HTTP5xx] != 5 || l.Good != 0 || l.Eligible != 5 || l.Balance() != nil {
		t.Errorf("want a ledger of 5, got %+v", l)
	}
	if err != nil || !ended || requests != 5 || h.outcomes["w http_5xx"] != 5 || len(h.failures) != 0 {
		t.Errorf("want 5 of http_5xx, got %d expected, %v, %q, %v", requests, h.outcomes, h.failures, err)
	}
}

// A stop lets requests in flight end, sends no later rows and is no error.
func TestOnceStopped(t *testing.T) {
	g := newGate(t)
	h := &heard{}
	w := once("w", "gate", write(t, "trace.jsonl", rows(1)+`{"timestamp": 3600000, "input_length": 5}`))
	w.Prompt.Calibrate = false
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	context.AfterFunc(ctx, func() { close(g.open) })
	go func() {
		<-g.came
		stop()
	}()
	o := h.options(conf([]config.Target{target("gate", g.url)}, w))
	cut, dropped := false, int64(0)
	ended := func(l measure.Ledger, why error) { cut, dropped = why != nil, l.Unsent() }
	err := Once{Options: o, Started: nothing, Ended: ended, Hold: time.Hour}.Run(ctx, t.Context())
	if err != nil || !cut || len(h.outcomes) != 1 || h.outcomes["w ok"] != 1 || dropped != 0 {
		t.Errorf("want one ok and nothing dropped, got %v, %v, %v", h.outcomes, dropped, err)
	}
}

func nothing(*Generation) {}

// After the end of the run, /metrics is served until a signal. It has the engine's figures as the last page had them.
func TestOnceHold(t *testing.T) {
	_, url := engine(t, func(*sim.Options) {})
	c := conf([]config.Target{target("sim", url)}, each("w", "sim", write(t, "trace.jsonl", rows(3))))
	c.Web.Listen = freeAddress(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	over, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- Once{
			Options: (&heard{}).options(c), Serve: true, Started: nothing, Hold: time.Hour,
			Ended: func(measure.Ledger, error) { close(over) },
		}.Run(ctx, t.Context())
	}()
	<-over
	p, err := outside.Scrape(t.Context(), "http://"+c.Web.Listen)
	if err != nil {
		t.Fatal(err)
	}
	if n := p.Sum("replayd_requests_total", "sim", "w", "ok"); n != 3 {
		t.Errorf("want 3 ok requests on the page, got %v", n)
	}
	// One more is the probe's.
	if n := p.Sum("replayd_engine_requests_finished_total", "sim"); n != 4 {
		t.Errorf("want the engine's 4 requests on the page, got %v", n)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Once waits for a target that comes up late. The plan's start counts from then on.
func TestOnceWaitReady(t *testing.T) {
	address := freeAddress(t)
	var tries []string
	serve := func() {
		e, err := sim.New(sim.Defaults())
		if err != nil {
			t.Error(err)
			return
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Error(err)
			return
		}
		s, served := e.Server(), make(chan struct{})
		go func() {
			_ = s.Serve(l) // it ends with Close
			close(served)
		}()
		t.Cleanup(func() { _ = s.Close(); <-served })
	}
	var ready, epoch time.Time
	seen := &planned{}
	o := (&heard{}).options(conf([]config.Target{target("sim", "http://"+address)}, once("w", "sim", write(t, "trace.jsonl", rows(3)))))
	o.Observers = append(o.Observers, seen)
	err := Once{
		Options: o, WaitReady: outside.Patience, Started: nothing, Ended: func(measure.Ledger, error) {},
		Tried: func(_ string, err error) {
			tries = append(tries, fmt.Sprint(err != nil))
			if err != nil {
				serve()
				return
			}
			ready = time.Now()
		},
		Epoch: func(now time.Time) time.Time {
			epoch = now.Add(3 * time.Second).Round(0)
			return epoch
		},
	}.Run(t.Context(), t.Context())
	if err != nil || fmt.Sprint(tries) != "[true false]" {
		t.Fatalf("want a failure and an answer, got %v, %v", tries, err)
	}
	if len(seen.at) != 3 || !seen.at[0].Round(0).Equal(epoch) || epoch.Before(ready) {
		t.Errorf("want 3 requests from %v on, got %v", epoch, seen.at)
	}
}

// planned collects the planned times of requests.
type planned struct {
	mu sync.Mutex
	at []time.Time
}

// Observe implements replay.Observer.
func (p *planned) Observe(r *measure.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = append(p.at, r.Timeline.Planned)
	slices.SortFunc(p.at, time.Time.Compare)
}

// No request is sent to a target that is not ready in time, or after a stop.
func TestOnceNotReady(t *testing.T) {
	c := conf([]config.Target{target("t", nobody)}, once("w", "t", write(t, "trace.jsonl", rows(1))))
	run := func(ctx context.Context, tried func(string, error)) error {
		started := func(*Generation) { t.Error("want nothing started") }
		return Once{
			Options: (&heard{}).options(c), WaitReady: 50 * time.Millisecond, Tried: tried, Started: started,
		}.Run(ctx, t.Context())
	}
	if err := run(t.Context(), func(string, error) {}); !errors.Is(err, ErrNotReady) || !strings.Contains(err.Error(), "target t: not ready within 50ms: GET http://127.0.0.1:1/v1/models: ") {
		t.Errorf("want it not ready, got %v", err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	why := errors.New("stopped")
	if err := run(ctx, func(string, error) { stop(why) }); !errors.Is(err, why) || errors.Is(err, ErrNotReady) {
		t.Errorf("want it stopped, got %v", err)
	}
}

func TestOnceErrors(t *testing.T) {
	h := &heard{}
	run := func(ctx context.Context, c config.Config) error {
		started := func(*Generation) { t.Error("want nothing started") }
		return Once{Options: h.options(c), Serve: true, Started: started}.Run(ctx, t.Context())
	}
	var build *ErrBuild
	c := conf([]config.Target{target("t", nobody)}, once("w", "t", filepath.Join(t.TempDir(), "gone.jsonl")))
	if err := run(t.Context(), c); !errors.As(err, &build) || !strings.Contains(err.Error(), "gone.jsonl: no such file") {
		t.Errorf("want a missing trace, got %v", err)
	}
	dir := c
	dir.Workloads = []config.Workload{once("w", "t", write(t, "trace.jsonl", rows(1)))}
	dir.Records.Path = t.TempDir()
	if err := run(t.Context(), dir); !errors.As(err, &build) || !errors.Is(err, syscall.EISDIR) {
		t.Errorf("want records that cannot be written, got %v", err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := run(stopped, c); errors.As(err, &build) || !errors.Is(err, context.Canceled) {
		t.Errorf("want it stopped, got %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c.Web.Listen = l.Addr().String()
	if err := run(t.Context(), c); errors.As(err, &build) || !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("want the address in use, got %v", err)
	}
}

// A limit aborts requests in flight, which is no failure of the run: the server here never ends an answer.
func TestOnceLimit(t *testing.T) {
	g := newGate(t)
	h := &heard{}
	w := once("w", "gate", write(t, "trace.jsonl", rows(2)))
	w.Prompt.Calibrate = false
	var cut error
	err := Once{
		Options: h.options(conf([]config.Target{target("gate", g.url)}, w)), Started: nothing, Limit: time.Millisecond,
		Ended: func(_ measure.Ledger, why error) { cut = why },
	}.Run(t.Context(), t.Context())
	if err != nil || cut != nil || h.outcomes["w ok"] != 0 {
		t.Errorf("want no ok request and no error, got %v, %v, %v", h.outcomes, err, cut)
	}
}
