package replay_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/dispatch"
	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/openai"
	"replayd/internal/replay"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// TestLives plays random lives of a workload in virtual time: open and closed plans, sessions with real answers,
// budgets, guards, pauses, outages and handovers from runner to runner. It uses only what package replay exports. Every
// life must end by itself, keep its ledger balanced, and send requests again soon after the last trouble.
//
// LIVES is the number of seeds (default 300), LIVES_FROM the first seed (default 0).
func TestLives(t *testing.T) {
	from, n := number(t, "LIVES_FROM", 0), number(t, "LIVES", 300)
	for seed := from; seed < from+n; seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { newLife(t, uint64(seed)).play() })
		})
	}
}

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: want a number, got %q", name, text)
	}
	return n
}

// Bounds of virtual time.
const (
	stuckAfter   = 12 * time.Hour  // a life that still runs then is stuck; a budget of one request a minute takes hours
	recoverAfter = 2 * time.Minute // requests must flow again by then; the window of the error ratio is a minute
)

// A life is a random history of one workload: a chain of runners, each the successor of the one before, and the events
// that happen to them.
type life struct {
	*testing.T
	rnd     *rand.Rand
	engine  *engine
	rows    []trace.Record
	options schedule.Options
	closed  bool
	endless bool // the plan loops until the life is stopped
	graphs  bool // rows name their parents; a successor forgets those that wait for them
	warmup  int  // requests before the plan; rows that fall due during the warm-up are not expected
	common  func(*replay.Workload)
	epoch   time.Time
	waiting *dispatch.Waiting // nil: no bound on waiting requests

	runners []*lived
	begins  []time.Time // planned time of each runner's first row; zero for the first runner
	running sync.WaitGroup

	mu   sync.Mutex
	load limits.Load // load on the engine's metrics page
	err  error       // set if the page cannot be read
}

// A lived is a runner and the reports of its observer.
type lived struct {
	*replay.Runner
	registry *prometheus.Registry
	client   *openai.Client
	target   *replay.Target
	lanes    int
	pacer    *replay.Pacer

	mu       sync.Mutex
	finished map[string]report
	dropped  map[measure.DropReason]int
}

// A report counts the observed requests with one id.
type report struct{ finished, ok, retried int }

// Observe implements replay.Observer.
func (l *lived) Observe(r *measure.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := l.finished[r.ID]
	seen.finished++
	if r.Outcome == measure.OK {
		seen.ok++
	}
	if r.Retried {
		seen.retried++
	}
	l.finished[r.ID] = seen
}

// start runs r in a goroutine until the end of the plan, a stop (ctx) or a hard stop (hard).
func (l *life) start(ctx, hard context.Context, r *lived) {
	l.running.Go(func() {
		side, end := context.WithCancel(context.Background())
		var asking sync.WaitGroup
		asking.Go(func() { r.pacer.Run(side) })
		asking.Go(func() {
			if err := r.target.Run(side); err != nil {
				l.Error(err)
			}
		})
		if err := r.Run(ctx, hard); err != nil {
			l.Error(err)
		}
		end()
		asking.Wait()
		r.client.Close()
	})
}

func (l *life) play() {
	work, stop := context.WithCancel(context.Background())
	defer stop()
	hard, cut := context.WithCancel(context.Background())
	defer cut()
	l.begins = []time.Time{{}}
	for range 1 + l.rnd.IntN(3) {
		r := l.next()
		n := len(l.runners)
		if n > 0 {
			l.runners[n-1].Retire(l.begins[n])
		}
		l.runners = append(l.runners, r)
		l.start(work, hard, r)
		for range l.rnd.IntN(4) {
			l.pass(1500)
			l.trouble(r)
		}
		begin := time.Now().Add(l.upTo(1200))
		if last := l.begins[n]; begin.Before(last) {
			begin = last.Add(l.upTo(300) * time.Duration(l.rnd.IntN(3)))
		}
		l.begins = append(l.begins, begin)
	}
	ended := make(chan struct{})
	go func() { // it ends with the life
		l.running.Wait()
		close(ended)
	}()
	stopped := l.one(4)
	if !stopped {
		l.flows(ended)
	}
	if stopped || l.endless {
		l.pass(4000)
		stop()
		if l.one(3) {
			l.pass(1000)
			cut()
		}
	}
	select {
	case <-ended:
	case <-time.After(stuckAfter):
		for i, r := range l.runners {
			l.Errorf("runner %d of %d has not ended: %+v, waiting %v, in flight %v", i, len(l.runners), r.State(),
				r.value(l.T, "replayd_requests_waiting"), r.value(l.T, "replayd_requests_in_flight"))
		}
		cut()
		stop()
		<-ended
	}
	l.engine.cut(true)
	l.engine.running.Wait()
	l.judge(stopped)
}

// trouble makes one random event happen to the workload. The event is over when trouble returns.
func (l *life) trouble(r *lived) {
	switch l.rnd.IntN(6) {
	case 0:
		r.Pause(true)
		l.pass(1500)
		r.Pause(false)
	case 1:
		l.engine.cut(true)
		l.pass(20000)
		l.engine.up()
	case 2:
		l.engine.cut(false)
	case 3:
		r.State()
	case 4:
		l.says(limits.Load{Waiting: float64(l.rnd.IntN(20)), KVCacheUsage: l.rnd.Float64()}, nil)
		l.pass(5000)
		l.says(limits.Load{}, nil)
	case 5:
		l.says(limits.Load{Waiting: math.NaN(), KVCacheUsage: math.NaN()}, errors.New("not scraped for a while"))
		l.pass(5000)
		l.says(limits.Load{}, nil)
	}
}

func (l *life) says(load limits.Load, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.load, l.err = load, err
}

// flows fails the test unless a request reaches the engine within recoverAfter or the life ends.
func (l *life) flows(ended <-chan struct{}) {
	before := l.engine.received()
	select {
	case <-ended:
		return
	case <-time.After(recoverAfter):
	}
	if now := l.engine.received(); now == before {
		last := l.runners[len(l.runners)-1]
		l.Errorf("nothing was sent in the %v after the last trouble: %+v", recoverAfter, last.State())
	}
}

// judge compares the series, the observers and the engine's log.
func (l *life) judge(stopped bool) {
	expected, filtered, lanes := 0.0, 0, 0
	all := map[string]report{}
	for i, r := range l.runners {
		lanes += r.lanes
		heard := 0
		for id, seen := range r.finished {
			if _, again := all[id]; again && !l.closed { // each runner of a closed plan begins with the first row
				l.Errorf("request %s finished in two runners", id)
			}
			was := all[id]
			all[id] = report{was.finished + seen.finished, was.ok + seen.ok, was.retried + seen.retried}
			if seen.finished > 1 {
				l.Errorf("request %s finished %d times", id, seen.finished)
			}
			heard += seen.finished
		}
		dropped := 0
		for why, n := range r.dropped {
			if why == measure.Filtered {
				filtered += n
			} else {
				dropped += n
			}
		}
		e, f := r.value(l.T, "replayd_requests_expected_total"), r.value(l.T, "replayd_requests_total")
		waiting, flying := r.value(l.T, "replayd_requests_waiting"), r.value(l.T, "replayd_requests_in_flight")
		if e != f+float64(dropped) || waiting != 0 || flying != 0 {
			l.Errorf("runner %d: expected %v, finished %v, dropped %d, waiting %v, in flight %v", i, e, f, dropped, waiting, flying)
		}
		if heard -= r.warmed(); int(f) != heard {
			l.Errorf("runner %d: %v requests finished, observers heard of %d", i, f, heard)
		}
		expected += e
	}
	if l.waiting != nil && l.waiting.Bytes() != 0 {
		l.Errorf("%d bytes of rows are counted as waiting at the end", l.waiting.Bytes())
	}
	l.engine.judge(l.T, lanes, all)
	if stopped || l.endless || l.closed || l.warmup > 0 {
		return
	}
	forgets := l.graphs && len(l.runners) > 1
	if want := len(l.rows); int(expected)+filtered > want || int(expected)+filtered < want && !forgets { // exactly one runner owns each row
		l.Errorf("%d rows, %v expected and %d filtered by %d runners", want, expected, filtered, len(l.runners))
	}
}

// warmed returns the number of reported warm-up requests.
func (l *lived) warmed() (n int) {
	for id := range l.finished {
		if strings.HasPrefix(id, "w/warmup/") {
			n++
		}
	}
	return n
}

// value returns the sum of a metric family of the runner.
func (l *lived) value(t *testing.T, family string) (sum float64) {
	t.Helper()
	families, err := l.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == family {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}
