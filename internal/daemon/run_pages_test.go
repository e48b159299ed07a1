package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/config"
	"replayd/internal/export"
	"replayd/internal/measure"
	"replayd/internal/replay"
	"replayd/internal/result"
	"replayd/internal/sim"

	"replayd/test/outside"
)

// A pagedRun is a run in virtual time against a simulated engine whose page is the test's.
type pagedRun struct {
	lag time.Duration // after which the page counts a request that has ended

	// page answers in place of the page; nil, or not done: the page does.
	page func(w http.ResponseWriter, r *http.Request) (done bool)

	mu          sync.Mutex
	finished    []time.Time // at the engine, those of the probe included
	reads       []time.Time // of the page
	first, last time.Time   // the first send and the last end, without the warm-up
	over        time.Time   // Ended was called
	series      []result.ServerSeries
}

func (p *pagedRun) Write(line []byte) (int, error) {
	var e sim.LogEntry
	if err := json.Unmarshal(line, &e); err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finished = append(p.finished, time.Now())
	return len(line), nil
}

func (p *pagedRun) Observe(r *measure.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if sent := r.Timeline.Write; p.first.IsZero() || sent.Before(p.first) {
		p.first = sent
	}
	if r.Timeline.End.After(p.last) {
		p.last = r.Timeline.End
	}
}

func (p *pagedRun) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.reads = append(p.reads, time.Now())
	n := 0
	for _, at := range p.finished {
		if time.Since(at) >= p.lag {
			n++
		}
	}
	page := p.page
	p.mu.Unlock()
	if page != nil && page(w, r) {
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	fmt.Fprintf(w, "vllm:request_success_total{engine=\"0\"} %d\n", n)
}

// run runs rows at a second's distance, of some 50 ms each.
func (p *pagedRun) run(t *testing.T, ctx context.Context, rows int, change func(*Once)) {
	t.Helper()
	wire, o := outside.NewPipes(), sim.Defaults()
	o.TTFT, o.ITL, o.Log = 20*time.Millisecond, 10*time.Millisecond, p
	e, err := sim.New(o)
	if err != nil {
		t.Fatal(err)
	}
	s := e.Server()
	inner := s.Handler
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			p.serve(w, r)
			return
		}
		inner.ServeHTTP(w, r)
	})
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(wire) })
	w := once("w", "sim", write(t, "trace.jsonl", paced(rows, 1000)))
	c := conf([]config.Target{target("sim", "http://engine:8000")}, w)
	c.Targets[0].Metrics.Interval = time.Second
	sampler := export.NewSampler()
	run := Once{
		Options: (&heard{}).options(c), Sampler: sampler, SampleEvery: time.Second, Started: nothing,
		Ended: func(measure.Ledger, error) { p.over = time.Now() },
	}
	run.Dial, run.Sleeper = wire.Dial, func() replay.Sleeper { return replay.NewTimers() }
	run.Observers = append(run.Observers, p)
	change(&run)
	if err := run.Run(ctx, t.Context()); err != nil {
		t.Error(err)
	}
	p.series = sampler.Series(p.first, p.last)
	_ = s.Close()
	serving.Wait()
	// net/http waits a moment before it closes a connection whose request body it has not read.
	<-time.After(time.Second)
}

// counted returns by how much the engine's finished requests grew, and how long that took.
func (p *pagedRun) counted(t *testing.T) (requests float64, span time.Duration) {
	t.Helper()
	for _, b := range p.series {
		if b.Name == "replayd_engine_requests_finished_total" && len(b.Times) > 0 {
			f, _ := b.Statistics()
			return f.Total, b.Times[len(b.Times)-1].Sub(b.Times[0])
		}
	}
	return 0, 0
}

// The engine's figures of a run are those of its requests: of each that was sent, though the engine counts it late, and
// of none of the probe or the warm-up.
func TestRunReadsTheFirstAndTheLastPage(t *testing.T) {
	for _, warmup := range []int{0, 2} {
		for _, rows := range []int{1, 4} {
			synctest.Test(t, func(t *testing.T) {
				p := &pagedRun{lag: 150 * time.Millisecond}
				p.run(t, t.Context(), rows, func(o *Once) { o.Config.Workloads[0].Warmup.Requests = warmup })
				if n, span := p.counted(t); n != float64(rows) || span != p.last.Sub(p.first) {
					t.Errorf("want %d requests in the %v of the run, got %v in %v", rows, p.last.Sub(p.first), n, span)
				}
				if all := len(p.finished); all != rows+warmup+1 {
					t.Errorf("want %d requests, %d of a warm-up and one of the probe at the engine, got %d",
						rows, warmup, all)
				}
				if took := p.over.Sub(p.last); took < 200*time.Millisecond || took > 600*time.Millisecond {
					t.Errorf("want two or three readings after the last end, got it over after %v", took)
				}
			})
		}
	}
}

// A page that hangs or fails, or counts that never stand still, cost a run no more than pagesWithin at its end, a
// stop ends that wait at once, and what they cost is not part of the run.
func TestPagesAreNotWaitedForWithoutBound(t *testing.T) {
	const rows = 2
	hang := func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	}
	fail := func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	begin := time.Time{}
	moves := func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprintf(w, "vllm:request_success_total{engine=\"0\"} %d\n", time.Since(begin))
		return true
	}
	late := func(page func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			return time.Since(begin) > 1900*time.Millisecond && page(w, r)
		}
	}
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	type bounds struct{ least, most time.Duration }
	twice, bound := bounds{ms(200), ms(300)}, bounds{pagesWithin, pagesWithin + ms(50)}
	for _, c := range []struct {
		name   string
		page   func(http.ResponseWriter, *http.Request) bool
		stop   time.Duration // after the last end; 0: none
		before bounds        // of the wait before the first send
		after  bounds        // of the wait after the last end
	}{
		{"answers", func(http.ResponseWriter, *http.Request) bool { return false }, 0, twice, twice},
		{"never there", fail, 0, bounds{0, ms(50)}, bounds{0, ms(50)}},
		{"always hangs", hang, 0, bounds{ms(750), ms(800)}, bounds{0, ms(50)}},
		{"fails later", late(fail), 0, twice, bounds{0, ms(50)}},
		{"hangs later", late(hang), 0, twice, bounds{ms(740), ms(1500)}},
		{"moves", moves, 0, bound, bound},
		{"moves, and a stop comes", moves, ms(300), bound, bounds{ms(300), ms(300)}},
		{"hangs, and a stop comes", late(hang), ms(300), twice, bounds{ms(300), ms(300)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin = time.Now()
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				p := &pagedRun{page: c.page}
				p.run(t, ctx, rows, func(o *Once) {
					if c.stop > 0 {
						ended := lastOf(rows, func() { time.AfterFunc(c.stop, stop) })
						o.Observers = append(o.Observers, ended)
					}
				})
				before, after := p.first.Sub(begin)-lead, p.over.Sub(p.last)
				if before < c.before.least || before > c.before.most || after < c.after.least || after > c.after.most {
					t.Errorf("got a wait of %v before the first request and of %v after the last", before, after)
				}
				if span := p.last.Sub(p.first); span > 1100*time.Millisecond {
					t.Errorf("want the plan's second and an answer, got %v", span)
				}
			})
		})
	}
}

// lead is the time from a target's answer to the first request of a plan.
const lead = 700 * time.Millisecond

// lastOf calls do when n requests have ended.
func lastOf(n int, do func()) replay.Observer { return &countdown{n, do} }

type countdown struct {
	left int
	do   func()
}

func (c *countdown) Observe(*measure.Request) {
	if c.left--; c.left == 0 {
		c.do()
	}
}

// A stop lets the requests in flight end, and then the page is read once.
func TestStoppedRunReadsTheLastPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		p := &pagedRun{}
		p.run(t, ctx, 5, func(o *Once) { o.Observers = append(o.Observers, lastOf(2, stop)) })
		if n, _ := p.counted(t); n != 2 {
			t.Errorf("want the 2 requests that were sent counted, got %v", n)
		}
		if took := p.over.Sub(p.last); took > 50*time.Millisecond {
			t.Errorf("want no wait after a stop, got %v", took)
		}
	})
}

// A plan with an epoch waits for no page, and the page is read before it all the same.
func TestEpochWaitsForNoPage(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			epoch := time.Now().Add(3 * time.Second)
			p := &pagedRun{page: func(_ http.ResponseWriter, r *http.Request) bool {
				if hangs {
					<-r.Context().Done()
				}
				return hangs
			}}
			p.run(t, t.Context(), 2, func(o *Once) { o.Config.Workloads[0].Epoch = epoch })
			if !p.first.Equal(epoch) {
				t.Errorf("want the first request at %v, got it %v later", epoch, p.first.Sub(epoch))
			}
			if n, _ := p.counted(t); n != 2 && !hangs {
				t.Errorf("want 2 requests counted, got %v", n)
			}
		})
	}
}
