package canary

import "math"

// A test is the evidence about one metric.
type test struct {
	metric    Metric
	threshold float64 // ln(1 + tolerance) of a latency; the tolerance of a share

	worse, better Evidence // of a latency: above and below the threshold; of a share: the candidate, and the baseline, has more
	ties          int64    // shares: blocks with as many on both sides
	passed        bool     // a latency's evidence for "not worse" has reached its bound
	neighbours    neighbours
	ratio         interval
	all           Tally // of a share
}

func newTest(o Options, m Metric) test {
	t := test{metric: m, threshold: o.threshold(m), neighbours: newNeighbours()}
	if m.IsLatency() {
		t.ratio = newInterval(t.threshold, o.FailLog10(), o.PassLog10())
	}
	return t
}

// latency adds a block's value. A value exactly at the tolerance is neither above nor below.
func (t *test) latency(value float64) {
	if math.IsNaN(value) {
		return
	}
	t.worse.Add(value > t.threshold)
	t.better.Add(value < t.threshold)
	t.neighbours.add(value)
	t.ratio.add(value)
	t.passed = t.passed || t.better.Log10() >= t.ratio.passLog10
	if t.passed {
		t.ratio.upper = min(t.ratio.upper, t.threshold)
	}
}

// share adds a block's counts. A tie gives no bit.
func (t *test) share(counts [2]int, pairs int) {
	t.all.add(Tally{Baseline: int64(counts[Baseline]), Candidate: int64(counts[Candidate]), Pairs: int64(pairs)})
	difference := counts[Candidate] - counts[Baseline]
	t.neighbours.add(float64(difference) / float64(pairs))
	if difference == 0 {
		t.ties++
		return
	}
	t.worse.Add(difference > 0)
	t.better.Add(difference < 0)
}

// hasFailed says whether the evidence is that of a fail.
func (t *test) hasFailed(failLog10 float64) bool {
	return t.worse.Log10() >= failLog10 && (t.metric.IsLatency() || t.all.excess() > t.threshold) && !t.neighbours.depend()
}
