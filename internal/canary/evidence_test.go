package canary

import (
	"math"
	"math/bits"
	"testing"
)

// By enumeration of all sequences of 20 bits, the expectation of E is at most 1 wherever the chance of a one is at most 1/2, and
// so is that of E at any time at which one may stop looking.
func TestEvidenceIsFair(t *testing.T) {
	const most = 20
	for _, p := range []float64{0, 0.1, 0.3, 0.45, 0.5} {
		for n := int64(1); n <= most; n++ {
			mean, ways := 0.0, 1.0
			for k := range n + 1 {
				mean += ways * math.Pow(p, float64(k)) * math.Pow(1-p, float64(n-k)) * math.Pow(10, Evidence{k, n}.Log10())
				ways = ways * float64(n-k) / float64(k+1)
			}
			if mean > 1+1e-9 {
				t.Errorf("chance %v, %d bits: E has the mean %v, want at most 1", p, n, mean)
			}
		}
	}
	const sequences = 1 << most
	sum := 0.0
	for s := range uint32(sequences) { // stop when E is 8 or more, else at the end
		e := 0.0
		for n := int64(1); n <= most; n++ {
			k := int64(bits.OnesCount32(s & (1<<n - 1)))
			if e = evidences[n][k]; e >= 8 {
				break
			}
		}
		sum += e
	}
	if mean := sum / sequences; mean > 1+1e-9 {
		t.Errorf("stopped at 8: E has the mean %v, want at most 1", mean)
	}
}

// evidences are all E of up to 20 bits.
var evidences = func() (e [21][21]float64) {
	for n := range int64(21) {
		for k := range n + 1 {
			e[n][k] = math.Pow(10, Evidence{k, n}.Log10())
		}
	}
	return e
}()

// Values of mpmath 1.3 with 60 digits, by its beta and betainc, and of a million bits by the sum of the binomial tail.
func TestEvidenceValues(t *testing.T) {
	for _, c := range golden {
		if got := (Evidence{c.ones, c.bits}).Log10(); math.Abs(got-c.log10) > 1e-9*max(1, math.Abs(c.log10)) {
			t.Errorf("%d of %d: got %.12g, want %.12g", c.ones, c.bits, got, c.log10)
		}
	}
}

// More ones are more evidence, and a zero more is less.
func TestEvidenceIsMonotone(t *testing.T) {
	for _, n := range []int64{1, 7, 60, 1440, 43200, 1_000_000} {
		before := math.Inf(-1)
		step := max(1, n/500)
		for k := int64(0); k <= n; k += step {
			got := Evidence{k, n}.Log10()
			if math.IsNaN(got) || got < before {
				t.Fatalf("%d of %d: got %v after %v", k, n, got, before)
			}
			before = got
		}
	}
}

// golden has the exact ends of the scale and values between.
var golden = []struct {
	ones, bits int64
	log10      float64
}{
	{0, 0, 0},
	{0, 1, -0.3010299956639812},
	{1, 1, 0.1760912590556812},
	{9, 9, 2.00987563371216},
	{12, 12, 2.799393573625786},
	{10, 20, -0.5682179325784225},
	{3, 20, -1.18544311652911},
	{15, 20, 0.8031511687092968},
	{40, 60, 0.9529497989398135},
	{500, 1000, -1.402265565361862},
	{560, 1000, 2.030053541096682},
	{430, 1000, -2.16602549724563},
	{66, 1440, -3.116973020119157},
	{21600, 43200, -2.219689474610782},
	{22200, 43200, 5.320345401666643},
	{21000, 43200, -3.091353515102218},
	{500000, 1000000, -2.901940387205568},
	{502000, 1000000, 0.8734374996223268},
	{499000, 1000000, -3.375337282068642},
	{1_000_000, 1_000_000, 300}, // capped
}
