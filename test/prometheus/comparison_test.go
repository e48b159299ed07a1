//go:build prometheus

package prometheus_test

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"replayd/internal/sim"

	"replayd/test/outside"
)

// compared are the counters of a comparison that stand still while both sides are paused and no pair is open.
var compared = []struct {
	name   string
	labels []string
}{
	{"replayd_comparison_pairs_total", []string{"judged"}},
	{"replayd_comparison_blocks_total", []string{"bad"}},
	{"replayd_comparison_answers_total", []string{"candidate"}},
	{"replayd_comparison_output_tokens_total", []string{"baseline"}},
}

// An exporter is a daemon that compares two simulated engines. Each of its lives is a process.
type exporter struct {
	dir, config, listen, url, state string
	logs                            [2]string // of the engines
	engines                         [2]*outside.Process
	daemon                          *outside.Process
}

func startExporter(t *testing.T) *exporter {
	t.Helper()
	dir := t.TempDir()
	e := &exporter{dir: dir, listen: outside.Address(t), state: filepath.Join(dir, "state")}
	e.url = "http://" + e.listen
	var targets strings.Builder
	for side, name := range []string{"stable", "canary"} {
		address := outside.Address(t)
		e.logs[side] = filepath.Join(dir, name+".jsonl")
		e.engines[side] = outside.Start(t, filepath.Join(dir, name+".out"), binary, "sim", "--web.listen-address", address,
			"--ttft", firstToken.String(), "--itl", "2ms", "--jitter", "0.05", "--log", e.logs[side])
		e.engines[side].Ready(t, http.DefaultClient, "http://"+address+"/health")
		fmt.Fprintf(&targets, "- {name: %s, url: \"http://%s\"}\n", name, address)
	}
	var trace strings.Builder
	for i := range rows {
		fmt.Fprintf(&trace, `{"timestamp": %d, "input_length": 100, "output_length": 8}`+"\n", i*int(rowGap.Milliseconds()))
	}
	path := outside.Write(t, dir, "trace.jsonl", trace.String())
	e.config = fmt.Sprintf(`
web: {listen: %q, enable_lifecycle: true}
state: {path: %q}
targets:
%sworkloads: [{name: chat, target: stable, trace: {path: %q}, repeat: {every: 10s}}]
comparisons: [{name: rollout, workload: chat, candidate: canary, min_pairs: 5, min_time: 1s, tolerance: TOLERANCE}]
`, e.listen, e.state, &targets, path)
	e.configure(t, "0.05")
	return e
}

func (e *exporter) configure(t *testing.T, tolerance string) {
	t.Helper()
	outside.Write(t, e.dir, "replayd.yaml", strings.Replace(e.config, "TOLERANCE", tolerance, 1))
}

// serve begins a life.
func (e *exporter) serve(t *testing.T) {
	t.Helper()
	e.daemon = outside.Start(t, filepath.Join(e.dir, "serve.out"), binary, "serve", "--config", filepath.Join(e.dir, "replayd.yaml"))
	e.daemon.Ready(t, http.DefaultClient, e.url+"/-/ready")
}

// judges waits until so many pairs of this life are judged.
func (e *exporter) judges(t *testing.T, pairs float64) outside.Page {
	t.Helper()
	return outside.See(t, e.url, fmt.Sprint(pairs, " judged pairs"), 90*time.Second, func(p outside.Page) bool {
		return p.Sum("replayd_comparison_pairs_total", "judged") >= pairs
	})
}

// rests pauses, and waits until the counters stand still and Prometheus has their last values. It returns those of this life, and then the void pairs.
func (e *exporter) rests(t *testing.T, p outside.Prometheus) []float64 {
	t.Helper()
	outside.Post(t, e.url+"/-/pause", 200)
	var last []float64
	outside.Until(t, 30*time.Second, func() error {
		page, err := outside.Scrape(t.Context(), e.url)
		if err != nil {
			return err
		}
		now := make([]float64, len(compared))
		for i, c := range compared {
			now[i] = page.Sum(c.name, c.labels...)
			matchers := c.name + `{` + matcher(c.labels[0]) + `}`
			seen := p.Number(t, `sum(`+matchers+` == `+matchers+` offset 3s)`, time.Time{})
			if seen != now[i] {
				err = fmt.Errorf("want %s at rest at %v, Prometheus has %v", matchers, now[i], seen)
			}
		}
		last = slices.Concat(now, []float64{page.Sum("replayd_comparison_pairs_total", "void")})
		return err
	})
	return last
}

// matcher selects the series that have a label with a value.
func matcher(value string) string {
	for label, values := range map[string]string{"result": "judged", "metric": "bad", "side": "baseline candidate"} {
		if strings.Contains(values, value) {
			return label + `="` + value + `"`
		}
	}
	return ""
}

// A real Prometheus counts each pair once, over a reload that replaces the comparison and over a kill −9 after which the evidence is read back.
func TestComparisonCounters(t *testing.T) {
	program := outside.PrometheusTool(t, "prometheus")
	e := startExporter(t)
	p := outside.StartPrometheus(t, program, t.TempDir(), fmt.Sprintf(`
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs: [{job_name: replayd, static_configs: [{targets: [%q]}]}]
`, e.listen))
	outside.Until(t, 30*time.Second, func() error { // it is to see the first pairs, too
		if n := p.Number(t, "up == 0", time.Time{}); n != 0 {
			return fmt.Errorf("want Prometheus to ask for the page, got up %v", n)
		}
		return nil
	})
	var lives [][]float64
	var begins []time.Time
	begins = append(begins, time.Now())
	e.serve(t)
	e.judges(t, 100)
	e.configure(t, "0.06")
	outside.Post(t, e.url+"/-/reload", 200)
	e.judges(t, 200)
	outside.Until(t, 90*time.Second, func() error { // it is written once a minute
		text, err := os.ReadFile(e.state)
		if err == nil && !strings.Contains(string(text), `"pairs":{"judged":`) {
			err = fmt.Errorf("want evidence in the state file, got %.200s", text)
		}
		return err
	})
	lives = append(lives, e.rests(t, p))
	e.daemon.Signal(t, syscall.SIGKILL)
	e.daemon.Wait(t, 10*time.Second)

	begins = append(begins, time.Now())
	e.serve(t)
	page, err := outside.Scrape(t.Context(), e.url)
	if err != nil {
		t.Fatal(err)
	}
	counted, kept := page.Sum("replayd_comparison_pairs_total", "judged"), page.Sum("replayd_comparison_epoch_pairs", "judged")
	if counted > 100 || kept < 200+counted || kept > lives[0][0]+counted {
		t.Errorf("after the kill: %v pairs are counted and %v are evidence; the first life had %v", counted, kept, lives[0][0])
	}
	e.judges(t, 100)
	e.configure(t, "0.05")
	outside.Post(t, e.url+"/-/reload", 200)
	e.judges(t, 200)
	lives = append(lives, e.rests(t, p))

	for i, c := range compared {
		want := lives[0][i] + lives[1][i]
		got := 0.0
		for _, one := range increases(t, p, c.name+`{`+matcher(c.labels[0])+`}`) {
			if math.Round(one.increase) != one.raw {
				t.Errorf("%s%v: the samples grow by %v, and increase() is %v", c.name, one.labels, one.raw, one.increase)
			}
			got += one.first + one.raw
		}
		if got != want || want < 5 {
			t.Errorf("%s%v: the samples grow by %v, the lives had %v and %v", c.name, c.labels, got, lives[0][i], lives[1][i])
		}
		t.Logf("%s%v: %v + %v = %v", c.name, c.labels, lives[0][i], lives[1][i], got)
	}
	e.daemon.Term(t, 40*time.Second)
	for n, in := range e.pairs(t, begins) {
		if judged, void := lives[n][0], lives[n][len(compared)]; judged > float64(in) || judged+void < float64(in) {
			t.Errorf("life %d: %v pairs were judged and %v void, and the engines have answered both requests of %d", n, judged, void, in)
		}
	}
}

// An increased is the growth of a series over all its samples.
type increased struct {
	labels               map[string]string
	first, raw, increase float64
}

// increases returns the growth of each series, by its samples and by increase(). The window of increase() begins a millisecond before the first sample, as
// its left end is open, and ends at the last: then only that millisecond is extrapolated.
func increases(t *testing.T, p outside.Prometheus, selector string) (all []increased) {
	t.Helper()
	series, err := p.Query(t.Context(), selector+`[10m]`, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range series {
		instant := func(i int) time.Time {
			seconds, _ := s.Values[i][0].(float64)
			return time.UnixMilli(int64(math.Round(1000 * seconds)))
		}
		one := increased{labels: s.Metric, first: s.Values[0].Number()}
		for i := 1; i < len(s.Values); i++ {
			before, now := s.Values[i-1].Number(), s.Values[i].Number()
			if now < before { // a new process
				before = 0
			}
			one.raw += now - before
		}
		begin, end := instant(0), instant(len(s.Values)-1)
		exact := selector[:len(selector)-1]
		for label, value := range s.Metric {
			if label != "__name__" {
				exact += `,` + label + `="` + value + `"`
			}
		}
		one.increase = p.Number(t, fmt.Sprintf(`increase(%s}[%dms])`, exact, end.Sub(begin).Milliseconds()+1), end)
		all = append(all, one)
	}
	return all
}

// pairs returns, for each life, the rows that both engines have answered.
func (e *exporter) pairs(t *testing.T, begins []time.Time) []int {
	t.Helper()
	answered := map[string]int{}
	pairs := make([]int, len(begins))
	for side := range e.engines {
		for _, r := range outside.EngineLog[sim.LogEntry](t, e.engines[side], e.logs[side]) {
			_, row, known := strings.Cut(r.ID, "/")
			if !known || strings.HasPrefix(r.ID, "replayd/") || r.Outcome != sim.OK {
				continue
			}
			if answered[row]++; answered[row] < 2 {
				continue
			}
			life := 0
			for life+1 < len(begins) && time.Unix(0, r.Arrival).After(begins[life+1]) {
				life++
			}
			pairs[life]++
		}
	}
	return pairs
}
