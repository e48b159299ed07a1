package compare_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"replayd/internal/measure"
	"replayd/internal/result"

	"replayd/bench/lab"
	"replayd/test/outside"
)

// A noise is what makes two runs of one trace differ though their servers are equal. Shares and deviations are of the
// logarithm of the time that work takes.
type noise struct {
	name     string
	held     bool          // no part of it lasts longer than a few blocks of 6 s: the page promises its level
	load     float64       // share of the server that the trace needs; 1 is all of it
	request  float64       // standard deviation, each request on its own
	drift    float64       // standard deviation of the server's, an AR(1)
	forgets  time.Duration // correlation time of the drift
	late     float64       // share of requests whose first token comes later, by a Pareto of 200 ms and shape 1.5
	neighbor float64       // takes this share of the server for 15 s of each two minutes
	spread   float64       // standard deviation of a constant of the run
}

// finding is the noise of the runs in which rows told 11 % apart and figures of whole runs did not: each row's ratio
// has a standard deviation of 0.41.
const finding = "each request, 29 %"

func noises() []noise {
	const s = time.Second
	return []noise{
		{name: "each request, 10 %", held: true, load: 0.3, request: 0.1},
		{name: finding, held: true, load: 0.3, request: 0.29},
		{name: "each request, 10 %, queue at 70 % load", held: true, load: 0.7, request: 0.1},
		{name: "each request, 29 %, queue at 70 % load", held: true, load: 0.7, request: 0.29},
		{name: "each request, 50 %, queue at 90 % load", held: true, load: 0.9, request: 0.5},
		{name: "2 % of first tokens late", held: true, load: 0.5, request: 0.1, late: 0.02},
		{name: "drift of 3 % over 2 s", held: true, load: 0.5, request: 0.1, drift: 0.03, forgets: 2 * s},
		{name: "drift of 3 % over 10 s", held: true, load: 0.5, request: 0.1, drift: 0.03, forgets: 10 * s},
		{name: "neighbor: 20 % for 15 s of 2 min", held: true, load: 0.5, request: 0.1, neighbor: 0.2},
		{name: "drift of 3 % over 1 min", load: 0.5, request: 0.1, drift: 0.03, forgets: 60 * s},
		{name: "drift of 3 % over 10 min", load: 0.5, request: 0.1, drift: 0.03, forgets: 600 * s},
		{name: "machines that differ by 2 %", load: 0.5, request: 0.1, spread: 0.02},
	}
}

// The trace of noises has 785 rows on average.
const (
	played        = 180 // s
	rowsPerSecond = 4.36
	meanPrompt    = 1000 // tokens
)

// play plays one run of the trace of a plan on a server with one queue for prefill. slow is the factor of the time that
// prefill takes.
func (n noise) play(name string, plan, seed uint64, slow float64) result.Run {
	trace, own := rand.New(rand.NewPCG(plan, 1)), rand.New(rand.NewPCG(seed, 2))
	run := result.Run{Name: name, Settings: result.Settings{Streamed: true}}
	speed, phase := n.speeds(own), own.Float64()*120
	at, free := 0.0, 0.0 // s: the row is due, the server has computed all prompts
	for i := 0; ; i++ {
		if at += trace.ExpFloat64() / rowsPerSecond; at > played {
			return run
		}
		prompt, begins := length(trace, meanPrompt), max(at, free)
		now := speed[min(int(10*begins), len(speed)-1)]
		if math.Mod(begins+phase, 120) < 15 {
			now += n.neighbor
		}
		work := func(seconds float64) float64 { return seconds * math.Exp(now+n.request*own.NormFloat64()) }
		free = begins + work(slow*n.load/rowsPerSecond*float64(prompt)/meanPrompt)
		first := free - at + 0.01
		if own.Float64() < n.late {
			first += 0.2 * math.Pow(own.Float64(), -1/1.5)
		}
		run.Rows = append(run.Rows, streamed(i, prompt, at, first, work(0.02)))
	}
}

// speeds returns the server's noise at each tenth of a second.
func (n noise) speeds(own *rand.Rand) []float64 {
	all := make([]float64, 20*played)
	constant, drift, keep := n.spread*own.NormFloat64(), n.drift*own.NormFloat64(), 0.0
	if n.drift > 0 {
		keep = math.Exp(-0.1 / n.forgets.Seconds())
	}
	for i := range all {
		all[i] = constant + drift
		drift = keep*drift + math.Sqrt(1-keep*keep)*n.drift*own.NormFloat64()
	}
	return all
}

// streamed returns a row with an answer of 50 tokens. Times are in seconds.
func streamed(i, prompt int, at, first, gap float64) result.Row {
	start := int64(1_800_000_000e9 + 1e9*at)
	r := result.Row{
		ID: fmt.Sprintf("run/0/%d", i), Phase: measure.Profiling, Outcome: measure.OK, Due: start, Start: start,
		Input: prompt, Output: 50, Prompt: measure.Length{Asked: prompt},
		TTFT: 1e3 * first, Second: 1e3 * gap, ITL: 1e3 * gap, Latency: 1e3 * (first + 49*gap),
	}
	r.First, r.End = start+int64(1e6*r.TTFT), start+int64(1e6*r.Latency)
	return r
}

// Runs of one trace against equal servers, with noise of many sorts: the page holds its level where no noise lasts, and
// it finds prefill that takes 11 % longer. The same pages without ids show what blocks of time alone find.
// COMPARE_PAGES is the number of pages of equal servers.
func TestRowsInNoise(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes for long, and what it runs at once has tests of its own")
	}
	pages, all := outside.Knob(t, "COMPARE_PAGES", 20, strconv.Atoi), noises()
	kinds := []struct {
		slow  float64
		ids   bool
		pages int
	}{{1, true, pages}, {1, false, pages}, {1.11, true, max(1, pages/5)}, {1.11, false, max(1, pages/5)}}
	results := make([][]said, len(all))
	var wait sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, n := range all {
		results[i] = make([]said, len(kinds))
		for k, kind := range kinds {
			wait.Go(func() {
				free <- struct{}{}
				defer func() { <-free }()
				for page := range kind.pages {
					seed := uint64(1_000_000*(i+1) + 100_000*k + 2*page)
					a, b := n.play("a", seed, seed, 1), n.play("b", seed, seed+1, kind.slow)
					for r := range b.Rows {
						if !kind.ids {
							b.Rows[r].ID = ""
						}
					}
					results[i][k].add(read(t, a, b))
				}
			})
		}
	}
	wait.Wait()

	table := &lab.Table{
		Title: fmt.Sprintf("Pages that compare two runs of one trace, %d requests in 3 minutes, computed by a queue with "+
			"noise: %d pages of equal servers and %d with a prefill that takes 11 %% longer for each noise, with fixed seeds. "+
			"“Any”: pages with at least one “better” or “worse”. “Found”: pages with at least one “worse”. “Blocks alone”: "+
			"the same without ids, so that no row has a partner. “Promised”: no noise lasts longer than a few blocks.",
			results[0][0].requests/(2*pages), pages, kinds[2].pages),
		Head: []string{
			"noise", "promised", "rows, equal: any", "blocks alone, equal: any", "rows: found", "“better”",
			"blocks alone: found", "“better”",
		},
	}
	var held said
	percent := func(n, of int) string { return fmt.Sprintf("%.1f %%", 100*share(n, of)) }
	for i, n := range all {
		r := results[i]
		cells := []string{n.name, map[bool]string{true: "yes", false: "no"}[n.held]}
		cells = append(cells, percent(r[0].any, pages), percent(r[1].any, pages))
		for _, slower := range r[2:] {
			cells = append(cells, percent(slower.worse, slower.pairs), percent(slower.better, slower.pairs))
		}
		table.Add(cells...)
		if n.held {
			held.add(r[0])
			if 1-atMost(r[0].any-1, pages, most) < 0.001 {
				t.Errorf("%s: %d of %d pages about equal servers have a verdict, want at most 6 %%", n.name, r[0].any, pages)
			}
		}
		if found := share(r[2].worse, r[2].pairs); n.name == finding && found < 0.75 {
			t.Errorf("%s: found in %.0f %% of pages, want 75 %%", n.name, 100*found)
		}
	}
	table.Note("Promised: %d of %d pages have any verdict, %.2f %%; the upper 95 %% bound of the share is %.2f %%.",
		held.any, held.pairs, 100*share(held.any, held.pairs), 100*upper(held.any, held.pairs))
	t.Logf("\n%s", table)
	if dir := os.Getenv("COMPARE_RESULTS"); dir != "" {
		text := []byte("# compare-noise\n\n" + table.String())
		if err := os.WriteFile(filepath.Join(dir, "compare-noise.md"), text, 0o644); err != nil {
			t.Error(err)
		}
	}
}
