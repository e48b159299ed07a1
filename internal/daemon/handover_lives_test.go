package daemon

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/config"
	"replayd/internal/measure"
	"replayd/internal/metrics"

	"replayd/test/outside"
)

// In lives with some reloads at random instants, in each mode, no request is sent twice and no counter falls. Where no reload
// changes the plan, each row up to the end was sent once or is counted as dropped, and a once sends each row, however many
// reloads come after it.
//
// HANDOVER_LIVES is the number of lives.
func TestHandoverLives(t *testing.T) {
	lives := 60
	if testing.Short() {
		lives = 20
	}
	if n, err := strconv.Atoi(os.Getenv("HANDOVER_LIVES")); err == nil {
		lives = n
	}
	dir := t.TempDir()
	sent, dropped, reloads := 0, 0, 0
	for seed := range uint64(lives) {
		l := &handoverLife{T: t, rng: rand.New(rand.NewPCG(seed, 59)), reg: prometheus.NewRegistry(), before: map[string]float64{}}
		synctest.Test(t, func(t *testing.T) {
			l.T = t
			defer func() {
				if t.Failed() {
					t.Logf("seed %d: %s", seed, strings.Join(l.story, ", "))
				}
			}()
			l.run(dir)
		})
		sent, dropped, reloads = sent+len(l.f.all), dropped+l.dropped, reloads+l.reloads
	}
	t.Logf("%d lives, %d reloads, %d requests, %d dropped", lives, reloads, sent, dropped)
}

type handoverLife struct {
	*testing.T
	rng     *rand.Rand
	f       finished
	reg     *prometheus.Registry
	before  map[string]float64
	story   []string
	moved   bool // a reload has changed the plan
	rows    int
	dropped int
	reloads int
}

func (l *handoverLife) one(of ...string) string { return of[l.rng.IntN(len(of))] }

// write writes a trace of sessions, or of single rows.
func (l *handoverLife) write(dir string, sessions bool) string {
	var b strings.Builder
	l.rows = 20 + l.rng.IntN(60)
	for i := range l.rows {
		fmt.Fprintf(&b, `{"timestamp": %d, "input_length": %d, "output_length": %d`, i*100, 20+i, 1+l.rng.IntN(200))
		if sessions {
			fmt.Fprintf(&b, `, "session_id": "s%d", "delay": %d`, i/7*2+i%2, l.rng.IntN(400))
		}
		b.WriteString("}\n")
	}
	path := filepath.Join(dir, fmt.Sprintf("%d.jsonl", l.rng.Uint64()))
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		l.Fatal(err)
	}
	return path
}

func (l *handoverLife) run(dir string) {
	mode := l.one("wall", "start", "once", "cron", "rate", "closed", "sessions", "starts")
	l.story = append(l.story, mode)
	sessions := mode == "sessions" || mode == "starts" || mode == "closed" && l.rng.IntN(2) == 0
	path := l.write(dir, sessions)
	w := once("w", "t", path)
	w.Lanes = 20
	switch mode {
	case "wall":
		w.Repeat.Mode, w.Repeat.Align, w.Repeat.Every = "loop", "wall_clock", 10*time.Second
	case "start":
		w.Repeat.Mode, w.Repeat.Align, w.Repeat.Every = "loop", "start", 10*time.Second
	case "cron":
		w.Repeat.Mode, w.Repeat.Cron = "cron", "* * * * *"
	case "rate", "starts":
		w.Arrival, w.Rate, w.Repeat.Mode, w.Repeat.Align = "poisson", 5, "loop", "start"
		if mode == "starts" {
			w.RateOf, w.Rate = "sessions", 1
		}
	case "closed":
		w.Arrival, w.Lanes = "concurrency", 1+l.rng.IntN(4)
	case "sessions":
		w.Arrival, w.AtOnce = "sessions", 1+l.rng.IntN(3)
	}
	if mode == "closed" || mode == "sessions" {
		w.Repeat.Mode = "loop"
		if l.rng.IntN(3) == 0 {
			w.Repeat.Mode = "once"
		}
	}
	if mode == "cron" {
		<-time.After(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
	}
	options := wired(l.T, &l.f)
	b := keep(l.T, conf([]config.Target{target("t", "http://sim:1")}, w), options, func(o *Options) { o.Meter = metrics.NewMeter(l.reg) })
	moves := l.rng.IntN(3) == 0
	for range 1 + l.rng.IntN(6) {
		<-time.After(time.Duration(l.rng.IntN(6000)) * time.Millisecond)
		l.reloads++
		if err := <-b.reload(func(c *config.Config) { l.change(c, moves, dir, sessions) }); err != nil {
			l.Fatal(err)
		}
		l.look()
	}
	if w.Repeat.Mode == "once" {
		<-time.After(20 * time.Minute)
	} else {
		<-time.After(time.Duration(l.rng.IntN(40000)) * time.Millisecond)
	}
	b.stop()
	<-b.over
	l.look()
	l.check(b.config.Workloads[0])
}

// change changes a key of the configuration.
func (l *handoverLife) change(c *config.Config, moves bool, dir string, sessions bool) {
	w := &c.Workloads[0]
	key := l.one("lanes", "slo", "objective", "wait", "target", "drain", "seed", "budget", "guard", "nothing", "idle", "limits")
	if moves && l.rng.IntN(2) == 0 {
		key = l.one("speed", "rate", "every", "trace", "window", "align", "offset", "stages")
		l.moved = true
	}
	n := 1 + l.rng.IntN(5)
	l.story = append(l.story, fmt.Sprint(key, " ", n, " at ", time.Now().Format("05.000")))
	switch key {
	case "lanes":
		if w.Arrival != "concurrency" {
			w.Lanes = 20 + n
		} else {
			w.Lanes = n
		}
	case "slo":
		w.SLO.Bounds = config.Bounds{"ttft": fmt.Sprint(n, "s")}
	case "objective":
		w.SLO.Objective = 0.9 + float64(n)/100
	case "wait":
		w.MaxWait = time.Duration(n) * time.Minute
	case "target":
		c.Targets[0].Timeouts.Total = time.Duration(n) * time.Minute
	case "idle":
		c.Targets[0].Idle = time.Duration(n) * time.Second
	case "drain":
		c.Drain = time.Duration(n) * time.Second
	case "seed":
		if w.Arrival != "poisson" {
			w.Prompt.Seed = uint64(n)
		}
	case "budget":
		w.Budget.RequestsPerMinute = 1e6 + int64(n)
	case "guard":
		w.Guard.ResumeAfter = time.Duration(n) * time.Second
	case "limits":
		w.Trace.MaxContext = 1e6 + n
	case "speed":
		if w.Timed() {
			w.Speed = cmp.Or(float64(n)/2, 1)
			w.Repeat.Every = 0
		}
	case "rate":
		w.Rate *= float64(n) / 2
	case "every":
		if w.Repeat.Mode == "loop" && !w.Closed() {
			w.Repeat.Every = time.Duration(20+10*n) * time.Second
		}
	case "trace":
		w.Trace.Path = l.write(dir, sessions)
	case "window":
		if w.Timed() {
			w.Trace.To = time.Duration(n) * time.Second
		}
	case "align":
		if w.Timed() && w.Repeat.Mode == "loop" {
			w.Repeat.Align = "start"
		}
	}
}

// look checks that no counter has fallen.
func (l *handoverLife) look() {
	families, err := l.reg.Gather()
	if err != nil {
		l.Fatal(err)
	}
	page := outside.Page{}
	for _, f := range families {
		page[f.GetName()] = f
		if !strings.HasSuffix(f.GetName(), "_total") {
			continue
		}
		for _, m := range f.GetMetric() {
			name := fmt.Sprint(f.GetName(), m.GetLabel())
			if now := m.GetCounter().GetValue(); now < l.before[name] {
				l.Errorf("%s fell from %v to %v", name, l.before[name], now)
			} else {
				l.before[name] = now
			}
		}
	}
	l.dropped = int(page.Sum("replayd_requests_dropped_total", "w"))
}

// check checks what was sent.
func (l *handoverLife) check(w config.Workload) {
	ids := map[string]bool{}
	loops := map[int64][]int{}
	ok := 0
	for _, r := range l.f.all {
		if ids[r.ID] {
			l.Errorf("%s was sent twice", r.ID)
		}
		ids[r.ID] = true
		loops[r.Loop] = append(loops[r.Loop], r.Row)
		if r.Outcome == measure.OK {
			ok++
		}
	}
	if l.moved {
		return
	}
	var numbers []int64
	for n := range loops {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	if w.Repeat.Mode != "once" && (w.BySession() || w.Closed()) { // what is in progress at the stop is cut
		numbers = numbers[:max(0, len(numbers)-5)]
	}
	missing := 0
	for i, n := range numbers {
		rows := loops[n]
		slices.Sort(rows)
		from, to := 0, l.rows-1
		if i == 0 && (w.Repeat.Mode == "cron" || w.Repeat.Mode == "loop" && w.Repeat.Align == "wall_clock") {
			from = rows[0] // the loop is joined
		}
		if i == len(numbers)-1 && w.Repeat.Mode != "once" {
			to = rows[len(rows)-1]
		}
		if n := to - from + 1 - len(rows); n > 0 {
			missing += n
			l.story = append(l.story, fmt.Sprint("loop ", numbers[i], " has ", rows))
		}
		if i > 0 && n != numbers[i-1]+1 {
			l.Errorf("loop %d comes after loop %d", n, numbers[i-1])
		}
	}
	if missing > l.dropped || w.Repeat.Mode == "once" && missing != l.dropped {
		l.Errorf("%d rows were not sent, and %d are counted as dropped", missing, l.dropped)
	}
}
