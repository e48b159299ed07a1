//go:build bench && linux

package limits_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"replayd/bench/lab"
	"replayd/bench/rig"
	"replayd/test/outside"
)

// A cost is the cost of a load for a client.
type cost struct {
	tokens float64 // per second
	cpu    float64 // µs a token
	memory float64 // KiB in RAM a stream
	heap   float64 // KiB of Go's heap a stream
	stack  float64 // KiB of stacks a stream
	flying float64 // streams in flight at the end
}

// TestCostOfStreams shows the cost of a token and of a stream by the number of streams.
func TestCostOfStreams(t *testing.T) {
	s, steal := rig.ReadSize(t), rig.WatchSteal(t)
	streams := []int{10, 300, 2000}
	if s.Full {
		streams = []int{10, 100, 300, 500, 700, 1000, 2000}
	}
	type key struct{ streams, round int }
	ours, floor := map[key]cost{}, map[key]cost{}
	for round := range s.Rounds {
		for _, n := range streams {
			l := streaming(n)
			ours[key{n, round}] = l.replayd(t, s.Slice)
			floor[key{n, round}] = l.floor(t, s.Slice)
		}
	}
	table := &lab.Table{
		Title: fmt.Sprintf("What tokens and streams cost, 100 tokens an answer; medians of %d rounds of %v a client. KiB of replayd are what it has more than idle; of the floor, "+
			"more than with the fewest streams. TTFT 50 ms, ITL 10 ms, from 1,000 streams on 40 ms.", s.Rounds, s.Slice),
		Head: []string{"streams", "tokens/s", "CPU µs a token", "the floor's", "ratio", "KiB a stream", "its heap", "its stacks", "the floor's"},
	}
	median := func(of map[key]cost, n int, value func(cost) float64) float64 {
		var all []float64
		for round := range s.Rounds {
			all = append(all, value(of[key{n, round}]))
		}
		return lab.Median(all...)
	}
	peak := func(c cost) float64 { return c.memory }
	for _, n := range streams {
		show := func(of map[key]cost, value func(cost) float64) string { return lab.Number(median(of, n, value)) }
		cpu := func(c cost) float64 { return c.cpu }
		base := streams[0]
		floorMemory := (median(floor, n, peak) - median(floor, base, peak)) / float64(n-base)
		table.Add(strconv.Itoa(n), show(ours, func(c cost) float64 { return c.tokens }), show(ours, cpu), show(floor, cpu),
			lab.Number(median(ours, n, cpu)/median(floor, n, cpu)), show(ours, peak), show(ours, func(c cost) float64 { return c.heap }),
			show(ours, func(c cost) float64 { return c.stack }), lab.Number(floorMemory))
	}
	table.Note("Goals: a ratio of 2 at most, 45 KiB a stream at most from 300 on.")
	rig.Results(t, "streams", steal, table)
}

// streaming returns a load of 100 tokens per stream, 10 ms apart, or 40 ms if that would be more than two cores carry.
func streaming(streams int) load {
	l := load{streams: streams, tokens: 100, ttft: 50 * time.Millisecond, itl: 10 * time.Millisecond}
	if streams >= 1000 {
		l.itl = 40 * time.Millisecond
	}
	return l
}

// replayd plays the load as a daemon, from an idle start, and measures while as many streams end as begin.
func (l load) replayd(t *testing.T, slice time.Duration) cost {
	t.Helper()
	const rest = time.Second
	dir := t.TempDir()
	stamp := l.server(t, rig.Options{NoLog: true})
	trace := l.trace(t, dir, rest, l.answer()+slice+rest)
	p, url := serve(t, dir, stamp.URL, fmt.Sprintf("trace: {path: %q}, repeat: {mode: once}, lanes: 8192", trace))
	defer stop(p, stamp.Process)
	began := first(t, url)
	wait(t, began.Add(rest*8/10))
	idle := look(t, p, url)
	wait(t, began.Add(rest+l.answer()))
	from := look(t, p, url)
	wait(t, from.at.Add(slice))
	to := look(t, p, url)
	to.allOK(t)
	c := cost{flying: to.page.Sum("replayd_requests_in_flight")}
	tokens := to.page.Sum("replayd_tokens_total", "output") - from.page.Sum("replayd_tokens_total", "output")
	c.tokens = tokens / to.at.Sub(from.at).Seconds()
	c.cpu = float64((to.cpu - from.cpu).Microseconds()) / tokens
	more := func(name string) float64 { return (to.page.Sum(name) - idle.page.Sum(name)) / 1024 / c.flying }
	c.memory = float64(to.memory-idle.memory) / 1024 / c.flying
	c.heap, c.stack = more("go_memstats_heap_inuse_bytes"), more("go_memstats_stack_inuse_bytes")
	return c
}

// floor plays the load with bench/floor. Its memory is that of the whole process.
func (l load) floor(t *testing.T, slice time.Duration) cost {
	t.Helper()
	dir := t.TempDir()
	stamp := l.server(t, rig.Options{NoLog: true})
	defer stop(stamp.Process)
	spent := l.loop(t, dir, stamp.URL, int((l.answer()+slice)/l.spacing()), l.spacing(), "")
	return cost{
		tokens: float64(spent.Tokens) / spent.Wall, cpu: 1e6 * spent.CPU / float64(spent.Tokens),
		memory: float64(spent.Peak) / 1024, flying: float64(l.streams),
	}
}

// loop runs bench/floor to its end.
func (l load) loop(t *testing.T, dir, target string, requests int, spacing time.Duration, out string) (s lab.Spent) {
	t.Helper()
	p := outside.Start(t, filepath.Join(dir, "floor.out"), rig.Program("floor"), "--url", target, "--streams", strconv.Itoa(l.streams),
		"--requests", strconv.Itoa(requests), "--spacing", spacing.String(), "--tokens", strconv.Itoa(l.tokens), "--out", out)
	p.Wait(t)
	if err := json.Unmarshal([]byte(p.Said(t)), &s); p.Err != nil || err != nil {
		t.Fatalf("floor: %v, %v: %s", p.Err, err, p.Said(t))
	}
	if s.Requests != requests || s.Tokens != requests*l.tokens {
		t.Errorf("floor: want %d requests of %d tokens, got %d and %d tokens", requests, l.tokens, s.Requests, s.Tokens)
	}
	return s
}

// serve starts the daemon with one workload; more has the rest of its keys.
func serve(t *testing.T, dir, target, more string) (*outside.Process, string) {
	t.Helper()
	address := outside.Address(t)
	config := outside.Write(t, dir, "replayd.yaml", strings.Join([]string{
		fmt.Sprintf("web: {listen: %q}", address),
		fmt.Sprintf("targets: [{name: stamp, url: %q, metrics: {interval: 0s}}]", target),
		fmt.Sprintf("workloads: [{name: load, target: stamp, %s}]\n", more),
	}, "\n"))
	p := outside.Start(t, filepath.Join(dir, "replayd.out"), binary, "serve", "--config", config, "--web.enable-pprof")
	return p, "http://" + address
}

// first waits until the first request is due.
func first(t *testing.T, url string) time.Time {
	t.Helper()
	outside.Until(t, func() error {
		page, err := outside.Scrape(t.Context(), url)
		if err == nil && page.Sum("replayd_requests_expected_total") == 0 {
			err = fmt.Errorf("want a request on the page, got none")
		}
		return err
	})
	return time.Now()
}

// A sight is the metrics page and the usage of a daemon at one instant.
type sight struct {
	at     time.Time
	page   outside.Page
	cpu    time.Duration
	memory int64 // bytes in RAM
}

func look(t *testing.T, p *outside.Process, url string) (s sight) {
	t.Helper()
	var err error
	if s.page, err = outside.Scrape(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	if s.memory, _, err = lab.Memory(p.Cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if s.cpu, err = lab.CPU(p.Cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	s.at = time.Now()
	return s
}

// allOK checks that there were requests and that all of them ended ok.
func (s sight) allOK(t *testing.T) {
	t.Helper()
	all, ok := s.page.Sum("replayd_requests_total"), s.page.Sum("replayd_requests_total", "ok")
	dropped := s.page.Sum("replayd_requests_dropped_total")
	if all == 0 || ok != all || dropped > 0 {
		t.Errorf("want all requests to end ok, got %v of %v, and %v were dropped", ok, all, dropped)
	}
}
