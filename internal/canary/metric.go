package canary

import "math"

// A test is the evidence about one metric.
type test struct {
	metric    Metric
	threshold float64 // ln(1 + tolerance) of a latency; the tolerance of a share

	worse, better Evidence // of a latency: above and below the threshold; of a share: the candidate, and the baseline, has more
	ties          int64    // shares: blocks with as many on both sides
	passed        bool     // a latency's evidence for "not worse" has reached its bound
	serial        serial
	ratio         interval
	more          [2]int64 // of a share: requests of each side
	of            int64    // of a share: pairs
}

func newTest(o Options, m Metric) test {
	t := test{metric: m, threshold: o.threshold(m)}
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
	t.serial.add(value)
	t.ratio.add(value)
	t.passed = t.passed || t.better.Log10() >= t.ratio.passLog10
	if t.passed {
		t.ratio.upper = min(t.ratio.upper, t.threshold)
	}
}

// share adds a block's counts. A tie gives no bit.
func (t *test) share(counts [2]int, pairs int) {
	t.more[Baseline] += int64(counts[Baseline])
	t.more[Candidate] += int64(counts[Candidate])
	t.of += int64(pairs)
	difference := counts[Candidate] - counts[Baseline]
	t.serial.add(float64(difference) / float64(pairs))
	if difference == 0 {
		t.ties++
		return
	}
	t.worse.Add(difference > 0)
	t.better.Add(difference < 0)
}

// excess is how much larger the candidate's share is than the baseline's.
func (t *test) excess() float64 {
	if t.of == 0 {
		return 0
	}
	return float64(t.more[Candidate]-t.more[Baseline]) / float64(t.of)
}

// hasFailed says whether the evidence is that of a fail.
func (t *test) hasFailed(failLog10 float64) bool {
	return t.worse.Log10() >= failLog10 && (t.metric.IsLatency() || t.excess() > t.threshold) && !t.serial.depends()
}

// serial is the correlation of neighbouring block values.
type serial struct {
	n                     int64
	first, last           float64
	sum, squares, product float64
}

func (s *serial) add(v float64) {
	if s.n == 0 {
		s.first = v
	} else {
		s.product += v * s.last
	}
	s.last = v
	s.n++
	s.sum += v
	s.squares += v * v
}

// correlation is the lag-1 autocorrelation; NaN below 3 values, or where all are equal.
func (s *serial) correlation() float64 {
	if s.n < 3 {
		return math.NaN()
	}
	n := float64(s.n)
	mean := s.sum / n
	variance := s.squares - n*mean*mean
	if variance <= 1e-12*s.squares {
		return math.NaN()
	}
	// Σ (vᵢ − mean)(vᵢ₊₁ − mean) = Σ vᵢvᵢ₊₁ − mean·(2·sum − first − last) + (n−1)·mean²
	return (s.product - mean*(2*s.sum-s.first-s.last) + (n-1)*mean*mean) / variance
}

const (
	dependLeast = 50    // blocks
	dependBound = 0.2   // of the correlation
	dependWidth = 1.645 // of its lower 95 % bound, in units of 1/√n
)

// depends says whether the blocks depend on each other. Then evidence is no evidence.
func (s *serial) depends() bool {
	return s.n >= dependLeast && s.correlation()-dependWidth/math.Sqrt(float64(s.n)) > dependBound
}
