package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"replayd/internal/measure"
	"replayd/internal/result"
)

// A noise is what makes two runs of one trace differ though their servers are equal. Deviations are of the logarithm of
// the time that work takes.
type noise struct {
	name    string
	load    float64 // share of the server that the trace needs; 1 is all of it
	request float64 // standard deviation, each request on its own
	drift   float64 // standard deviation of the server's, an AR(1) that forgets within 10 s
}

// play plays 3 minutes of the trace of a plan on a server with one queue for prefill. slow is the factor of the time
// that prefill takes.
func (n noise) play(name string, plan, seed uint64, slow float64) result.Run {
	const length, rate, prompt = 180, 4.36, 1000 // s, rows/s, tokens
	trace, own := rand.New(rand.NewPCG(plan, 1)), rand.New(rand.NewPCG(seed, 2))
	keep, now := math.Exp(-0.1/10), n.drift*own.NormFloat64()
	speed := make([]float64, 20*length) // at each tenth of a second
	for i := range speed {
		speed[i] = now
		now = keep*now + math.Sqrt(1-keep*keep)*n.drift*own.NormFloat64()
	}
	run := result.Run{Name: name, Settings: result.Settings{Streamed: true}}
	at, free := 0.0, 0.0 // s: the row is due, the server has computed all prompts
	for i := 0; ; i++ {
		if at += trace.ExpFloat64() / rate; at > length {
			return run
		}
		tokens := prompt * math.Exp(0.6*trace.NormFloat64()-0.18)
		begins := max(at, free)
		drift := speed[min(int(10*begins), len(speed)-1)]
		work := func(seconds float64) float64 { return seconds * math.Exp(drift+n.request*own.NormFloat64()) }
		free = begins + work(slow*n.load/rate*tokens/prompt)
		first, gap, start := free-at+0.01, work(0.02), int64(1.8e18+1e9*at)
		r := result.Row{
			ID: fmt.Sprintf("run/0/%d", i), Phase: measure.Profiling, Outcome: measure.OK, Due: start, Start: start,
			Input: int(tokens), Output: 50, Prompt: measure.Length{Asked: int(tokens)},
			TTFT: 1e3 * first, Second: 1e3 * gap, ITL: 1e3 * gap, Latency: 1e3 * (first + 49*gap),
		}
		r.First, r.End = start+int64(1e6*r.TTFT), start+int64(1e6*r.Latency)
		run.Rows = append(run.Rows, r)
	}
}

// At most 6 % of pages about two runs of one trace against equal servers have any verdict, where no noise lasts longer
// than a few blocks, and prefill that takes 11 % longer is found.
func TestLevelOfPages(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes for long, and nothing at once")
	}
	const pages, most = 40, 7 // 7 or more of 40 have a chance of 1 % at 6 %
	for i, n := range []noise{
		{name: "each request, 29 %", load: 0.3, request: 0.29},
		{name: "each request, 50 %, queue at 90 % load", load: 0.9, request: 0.5},
		{name: "drift of 3 % over 10 s", load: 0.5, request: 0.1, drift: 0.03},
	} {
		count := func(slow float64, pages int, verdict ...string) (with int) {
			for page := range pages {
				seed := uint64(1_000_000*(i+1) + 2*page)
				by, _, _ := verdicts(t, n.play("a", seed, seed, 1), n.play("b", seed, seed+1, slow))
				for _, v := range verdict {
					for _, got := range by {
						if got == v {
							with++
							break
						}
					}
				}
			}
			return with
		}
		wrong, found := count(1, pages, "worse", "better"), count(1.11, pages/4, "worse")
		t.Logf("%s: %d of %d pages about equal servers have a verdict, %d of %d find the slower one", n.name, wrong, pages, found, pages/4)
		if wrong >= most {
			t.Errorf("%s: %d of %d pages about equal servers have a verdict, want at most 6 %%", n.name, wrong, pages)
		}
		if i == 0 && found < pages/4*3/4 {
			t.Errorf("%s: found on %d of %d pages, want 75 %%", n.name, found, pages/4)
		}
	}
}
