package report

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"replayd/internal/measure"
	"replayd/internal/result"
	"replayd/test/resulttest"
)

func within(t *testing.T, what string, got, want, by float64) {
	t.Helper()
	if !(math.Abs(got-want) <= by) {
		t.Errorf("%s = %v, want %v ± %v", what, got, want, by)
	}
}

// steps3 is a run of 300 requests, one a second, whose latency is about a, then b, then c.
func steps3(a, b, c float64) runData {
	random := rand.New(rand.NewPCG(2, 2))
	run := result.Run{Name: "steps"}
	for i := range 300 {
		latency := []float64{a, b, c}[i/100] * (1 + 0.1*random.Float64())
		start := resulttest.Begin.UnixNano() + int64(i)*1e9
		run.Rows = append(run.Rows, result.Row{
			Outcome: measure.OK, Start: start, End: start + int64(latency*1e6), Latency: latency, Output: 10,
			TTFT: latency / 2, First: start + int64(latency/2*1e6), Lateness: 0.1, ITL: 1,
		})
	}
	return newRunData(run)
}

func TestDrift(t *testing.T) {
	for want, l := range map[string]runData{
		"Latency has no significant trend (300 requests): p50 of each third of the run: 10": steps3(100, 101, 99),
		"Latency rises: ":             steps3(100, 100, 150),
		"Latency falls: ":             steps3(200, 150, 100),
		"Latency rises, then falls: ": steps3(100, 200, 110),
		"Latency falls, then rises: ": steps3(200, 100, 300),
	} {
		if got := l.drift(shownQuantities[2]); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// One request a second that takes 2 s: at most two in flight, and 600 request-seconds in a run of 301 s.
func TestInFlight(t *testing.T) {
	l := steps3(1, 1, 1)
	for i := range l.rows {
		l.rows[i].End = l.rows[i].Start + 2e9
	}
	l.seconds = 301
	flight, all, most := l.inFlight(301, 1)
	if most != 2 { // a request that ends when another begins does not overlap it
		t.Errorf("%v at most, want 2", most)
	}
	within(t, "in all", all, 600, 1e-9)
	sum := 0.0
	for _, v := range flight {
		sum += v
	}
	within(t, "sum of the bins", sum, 600, 1e-9)
	within(t, "the first", flight[0], 1, 1e-9)
	within(t, "the second", flight[1], 2, 1e-9)
}

// The bins of the plots hold every request and every output token.
func TestThroughputBins(t *testing.T) {
	l := newRunData(resulttest.Run(t))
	s := l.throughput()
	for _, c := range []struct {
		plot, series int
		want         float64
	}{{0, 0, float64(l.figures.OK)}, {1, 0, l.single("total_osl")}} {
		line := s.Plots[c.plot].Series[c.series]
		sum := 0.0
		for i := range len(line.X) - 1 {
			sum += line.Y[i] * (line.X[i+1] - line.X[i])
		}
		within(t, s.Plots[c.plot].Title, sum, c.want, 1e-6*c.want)
	}
}
