package daemon

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/config"
	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/internal/replay"

	"replayd/test/outside"
)

// A valid configuration runs for some seconds of virtual time against an engine with faults, over connections that
// break, with pauses and reloads. Whenever no request moves, the ledgers balance and no counter has fallen. In the end
// no request is left, and each row of a plan was sent once.
func FuzzLives(f *testing.F) {
	f.Add([]byte{})
	r := rand.New(rand.NewPCG(3, 4))
	lives := 12
	if testing.Short() {
		lives = 8
	}
	for n := range lives {
		choices := make([]byte, 60*n)
		for i := range choices {
			choices[i] = byte(r.UintN(256))
		}
		f.Add(choices)
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) { newLife(t, &dice{choices}, dir).run() })
	})
}

const (
	maxRequests = 300                   // a life ends after so many requests
	travel      = 5 * time.Millisecond  // time to connect; virtual time must pass even if all requests fail
	toil        = 20 * time.Millisecond // time before any answer
)

// A life is a generation, its successors by reloads, and their engine.
type life struct {
	*testing.T
	*dice
	dir     string
	wire    *outside.Pipes
	rough   bool // some connections are refused or break
	reg     *prometheus.Registry
	reloads int

	mu       sync.Mutex
	dials    int
	arrivals map[string]int // at the engine, by X-Request-Id
	ended    map[string]int // by id
	before   map[string]float64
}

func newLife(t *testing.T, d *dice, dir string) *life {
	return &life{
		T: t, dice: d, dir: dir, wire: outside.NewPipes(), reg: prometheus.NewRegistry(), rough: of(d, false, false, false, true),
		arrivals: map[string]int{}, ended: map[string]int{}, before: map[string]float64{},
	}
}

func (l *life) run() {
	end := l.serve()
	defer end()
	c, text, ok := l.invent()
	if !ok {
		return
	}
	ctx, stop := context.WithCancel(l.Context())
	defer stop()
	g, err := Build(ctx, l.options(c))
	if err != nil {
		return
	}
	defer func() {
		if l.Failed() {
			l.Log("\n" + text)
		}
	}()
	g.Start(ctx, l.Context())
	for range 30 {
		g = l.happen(ctx, g, &text)
		l.pass(of(l.dice, 100*time.Millisecond, time.Second, 7*time.Millisecond, 20*time.Second, 300*time.Millisecond))
		l.look(g, false)
		if l.Failed() || l.seen() > maxRequests {
			break
		}
	}
	l.end(g, stop)
}

// end stops the life and checks the counts at its end.
func (l *life) end(g *Generation, stop context.CancelFunc) {
	ran := true // every plan has ended by itself
	for _, w := range g.workloads {
		ran = ran && w.ended()
	}
	stop()
	if err := g.Close(); err != nil {
		l.Error(err)
	}
	page := l.look(g, true)
	finished := page.Sum("replayd_requests_total")
	for _, w := range g.workloads {
		name, c := w.config.Name, w.config
		if n := page.Sum("replayd_requests_in_flight", name) + page.Sum("replayd_requests_waiting", name); n != 0 {
			l.Errorf("%s: %v in flight or waiting at the end", name, n)
		}
		whole := c.Repeat.Mode == "once" && c.Trace.From == 0 && c.Trace.To == 0 && c.Shard.Of == 1
		expected := page.Sum("replayd_requests_expected_total", name) + page.Sum("replayd_requests_dropped_total", name, "filtered")
		if n := w.rows.stats.Requests; ran && whole && n > 0 && l.reloads == 0 && expected != float64(n) {
			l.Errorf("%s: want each of %d rows expected or filtered, got %v", name, n, expected)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if finished != float64(len(l.ended)) {
		l.Errorf("%v finished on the page, %d were observed", finished, len(l.ended))
	}
	for id, n := range l.ended {
		if n > 1 || !l.rough && l.arrivals[id] > 1 {
			l.Errorf("%s ended %d times, was sent %d times", id, n, l.arrivals[id])
		}
	}
}

// happen makes one random event happen: for instance a pause or a reload.
func (l *life) happen(ctx context.Context, g *Generation, text *string) *Generation {
	switch l.roll() % 16 {
	case 1:
		_, _, _ = g.Pause(of(l.dice, "", "w0", "w1"), true) // whether there is such a workload is left to chance
	case 2, 3:
		_, _, _ = g.Pause("", false) // whether there is such a workload is left to chance
	case 4, 5:
		c, after, ok := l.invent()
		if !ok || l.reloads > 1 {
			return g
		}
		next, err := g.Next(ctx, c)
		if err != nil {
			return g
		}
		l.reloads++
		*text += "reloaded\n" + after
		next.Replace(ctx, l.Context(), g)
		return next
	}
	return g
}

func (l *life) invent() (c config.Config, text string, ok bool) {
	v := invent(l.dice, l.dir, true)
	c, err := v.load(l.T)
	for path, rows := range v.files {
		v.line("# " + path + "\n" + rows)
	}
	return c, v.text.String(), err == nil
}

// pass lets d of virtual time go by, or less if many requests arrive.
func (l *life) pass(d time.Duration) {
	const most = 500 * time.Millisecond
	for ; d > 0 && l.seen() <= maxRequests; d -= most {
		<-time.After(min(d, most))
	}
	synctest.Wait()
}

func (l *life) seen() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.arrivals)
}

// look scrapes and checks the page. The counters are compared with the last scrape if counters is set, else sometimes.
func (l *life) look(g *Generation, counters bool) outside.Page {
	families, err := l.reg.Gather()
	if err != nil {
		l.Fatal(err)
	}
	page := outside.Page{}
	for _, f := range families {
		page[f.GetName()] = f
	}
	for _, fault := range page.Balance() {
		l.Error(fault)
	}
	for _, w := range g.workloads {
		if n := page.Sum("replayd_requests_in_flight", w.config.Name); l.reloads == 0 && n > float64(w.config.Lanes) {
			l.Errorf("%s: %v in flight, want at most %d", w.config.Name, n, w.config.Lanes)
		}
	}
	if !counters && l.roll()%4 != 1 {
		return page
	}
	now := page.Counters()
	for key, v := range now {
		if was, ok := l.before[key]; ok && v < was {
			l.Errorf("%s fell from %v to %v", key, was, v)
		}
	}
	l.before = maps.Clone(now)
	return page
}

// Observe implements replay.Observer.
func (l *life) Observe(r *measure.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended[strings.Clone(r.ID)]++
}

func (l *life) options(c config.Config) Options {
	return Options{
		Virtual:   Virtual{Dial: l.dial, Sleeper: func() replay.Sleeper { return replay.NewTimers() }},
		Config:    c,
		Meter:     metrics.NewMeter(l.reg),
		UserAgent: "replayd/test",
		Log:       slog.New(slog.DiscardHandler),
		Observers: []replay.Observer{l},
		Failed: func(err error) {
			if !strings.Contains(err.Error(), "are over the length limits") { // all rows of a closed loop are filtered
				l.Error(err)
			}
		},
	}
}
