//go:build live

package live

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"replayd/internal/canary"
	"replayd/internal/comparison"
	"replayd/internal/live"
	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/internal/scrape"
	"replayd/internal/trace"
)

// A load is synthetic traffic of one workload: 40 requests a second, of which some fail if sick is set.
type load struct {
	w    *live.Workload
	sick bool

	mu    sync.Mutex
	state live.State
	n     int
}

func newLoad(b *live.Board, name string, sick bool) *load {
	l := &load{sick: sick, state: live.State{
		Ledger: measure.Ledger{Outcomes: map[measure.Outcome]int64{}, Dropped: map[measure.DropReason]int64{}},
		Phase:  live.Running, Loop: 7, LoopDuration: time.Hour, TargetUp: true, TargetText: "answers as <i>m</i>", Started: time.Now(),
	}}
	bins := make([]int64, 60)
	for i := range bins {
		bins[i] = int64(100 + 50*(i%7))
	}
	l.w = b.Workload(live.WorkloadOptions{
		Name: name, Target: "vllm", URL: "http://user:secret@127.0.0.1:8000/v1", API: "chat", Model: `<b onclick="alert(1)">m</b>`,
		Schedule: "loop on the wall clock", Lanes: 256, Objective: 0.99,
		SLO:   measure.SLO{{Quantity: measure.TTFT, Limit: 150}},
		Trace: metrics.TraceInfo{Path: "a-trace-with-a-very-long-name-that-has-no-place-to-break.jsonl", Format: "mooncake", SHA256: "0123456789ab", Requests: 12031},
		From:  5 * time.Minute, To: 50 * time.Minute,
		Length: time.Hour - 10*time.Second, Curve: trace.Curve{Bin: time.Minute, Requests: bins, InputTokens: bins, OutputTokens: bins},
		State: l.now,
	})
	return l
}

func (l *load) now() live.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.state
	s.Ledger.Outcomes, s.Ledger.Dropped = maps.Clone(s.Ledger.Outcomes), maps.Clone(s.Ledger.Dropped)
	s.Position = 5*time.Minute + 30*time.Since(s.Started) // at speed 30, so that it moves visibly
	s.Next = s.Started.Add(time.Hour)
	return s
}

// step ends one request.
func (l *load) step(rng *rand.Rand) {
	l.n++
	now := time.Now()
	ttft := time.Duration(float64(80*time.Millisecond) * (0.5 + rng.ExpFloat64()))
	r := &measure.Request{ID: fmt.Sprintf("load/7/%d", l.n), Outcome: measure.OK, Usage: measure.Usage{Prompt: 1000, Output: 11}}
	r.Timeline = measure.Timeline{Due: now, Ready: now, Write: now.Add(90 * time.Microsecond), End: now, Chunks: []time.Duration{ttft, 2 * ttft}}
	if l.sick && l.n%3 == 0 {
		r.Outcome, r.Timeline.Chunks = measure.HTTP5xx, nil
		r.Error = `503: <img src="https://elsewhere.invalid/x" onerror="alert(2)">`
	}
	l.mu.Lock()
	c := &l.state.Ledger
	c.Expected++
	c.Outcomes[r.Outcome]++
	c.InFlight = int64(10 + l.n%5)
	if r.Outcome == measure.OK {
		c.PromptTokens, c.OutputTokens, c.Good = c.PromptTokens+1000, c.OutputTokens+11, c.Good+1
	}
	l.mu.Unlock()
	l.w.Observe(r)
}

// series returns a series of an engine or a GPU.
func series(name string, v float64) *scrape.Series {
	return &scrape.Series{Family: &scrape.Family{Name: "replayd_" + name}, Value: v}
}

// engines returns the readings of an engine. Half of the prompt tokens between two readings are found in its prefix cache.
func engines() func() []scrape.Values {
	prompt := 0.0
	return func() []scrape.Values {
		prompt += 100
		return []scrape.Values{{Target: "vllm", Up: true, Series: []*scrape.Series{
			series("engine_requests_running", 5), series("engine_requests_waiting", 2),
			series("engine_kv_cache_usage_ratio", 0.25), series("engine_prefix_cache_queries_tokens_total", prompt),
			series("engine_prefix_cache_hits_tokens_total", prompt/2),
		}}}
	}
}

// gpus returns the readings of two GPUs.
func gpus() []scrape.Values {
	return []scrape.Values{{Target: "vllm", Up: true, Series: []*scrape.Series{
		series("gpu_power_watts", 306), series("gpu_power_watts", 306),
		series("gpu_utilization_ratio", 0.5), series("gpu_utilization_ratio", 1),
	}}}
}

// rollouts returns a comparison whose table has all its figures, under a name as long as they may be.
func rollouts() []comparison.Status {
	o := canary.Defaults()
	o.MinTime = 20 * time.Second
	c := canary.New(o)
	for i := range 800 {
		p := canary.Pair{At: time.Unix(int64(i), 0)}
		for side := range p.Requests {
			d := time.Duration(100+i%7) * time.Millisecond
			p.Requests[side] = canary.Request{
				Sent: p.At, First: p.At.Add(d), End: p.At.Add(2 * d), TTFT: d, TPOT: d / 10, E2E: 2 * d,
			}
		}
		c.Add(&p)
	}
	return []comparison.Status{{
		Name: longName, Workload: "chat", Baseline: "vllm-0-24-0.inference.svc.cluster.local", Candidate: "canary",
		Options: o, Epoch: time.Unix(0, 0), Judgment: c.Judge(),
	}}
}

// A site is a Board with loads behind an http.Server.
type site struct {
	board *live.Board
	stop  func()
}

// serve starts a site. An empty address is any free port of this machine.
func serve(t *testing.T, address string, names ...string) (s site, at string) {
	t.Helper()
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	b := live.New(live.Options{Version: "1.2.3", Engines: engines(), GPUs: gpus, Comparisons: rollouts})
	var loads []*load
	for i, name := range names {
		loads = append(loads, newLoad(b, name, i == 1))
	}
	b.Note(time.Now(), slog.LevelError, "reload failed: <script>alert(3)</script>")

	ctx, cancel := context.WithCancel(context.Background())
	server := &http.Server{Handler: b.Handler(), ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 60 * time.Second}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) }) // it ends with ErrServerClosed
	running.Go(func() { _ = b.Run(ctx) })             // always nil
	running.Go(func() {
		rng := rand.New(rand.NewPCG(1, 2))
		tick := time.NewTicker(25 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			for _, l := range loads {
				l.step(rng)
			}
		}
	})
	var once sync.Once
	s = site{b, func() {
		once.Do(func() {
			cancel()
			_ = server.Close()
			running.Wait()
		})
	}}
	t.Cleanup(s.stop)
	return s, listener.Addr().String()
}
