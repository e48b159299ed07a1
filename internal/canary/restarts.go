package canary

import "math"

// Restarts is the evidence over restarts of an engine: Σ 2⁻ᵏ E⁽ᵏ⁾, where E⁽ᵏ⁾ is that of the time between two restarts, from k = 1. Each E is 1 before
// its time begins, so the sum begins at 1, and it is a supermartingale like each of them: the error is spent once, however often an engine
// restarts. Without a restart it costs one bit. The zero value is that before the first bit.
type Restarts struct {
	Evidence `json:"-"` // since the latest restart
	Count    int64      `json:"count"` // of restarts
	// Past is the decimal logarithm of Σ 2⁻ᵏ E⁽ᵏ⁾ of the times that have ended; nothing at a count of 0.
	Past float64 `json:"past_log10"`
}

// addLog10 is the decimal logarithm of 10ᵃ + 10ᵇ. One of them may be −∞.
func addLog10(a, b float64) float64 {
	high, low := max(a, b), min(a, b)
	return high + math.Log1p(math.Exp((low-high)*math.Ln10))/math.Ln10
}

// weight is the decimal logarithm of 2⁻ᵏ of the present time.
func (r *Restarts) weight() float64 { return -float64(r.Count+1) * math.Log10(2) }

// Restart ends the present time.
func (r *Restarts) Restart() {
	ended := r.weight() + r.Evidence.Log10()
	if r.Count > 0 {
		ended = addLog10(r.Past, ended)
	}
	r.Past, r.Evidence = ended, Evidence{}
	r.Count++
}

// Log10 is the decimal logarithm of the sum, from −300 to 300.
func (r *Restarts) Log10() float64 { return r.with(r.Evidence) }

// with is Log10 with other evidence since the latest restart. All times that have not begun have the weight of the present one together.
func (r *Restarts) with(e Evidence) float64 {
	if r.Count == 0 && e.Bits == 0 {
		return 0
	}
	sum := addLog10(r.weight(), r.weight()+e.Log10())
	if r.Count > 0 {
		sum = addLog10(r.Past, sum)
	}
	return max(-maxLog10, min(maxLog10, sum))
}
