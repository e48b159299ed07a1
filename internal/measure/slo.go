package measure

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An SLO is what an ok request must keep to be good: bounds in the order of the quantities, each quantity at most once.
type SLO []Bound

// A Bound is the most of a quantity that is within a service level, or the least where larger is better. Its limit is in the
// quantity's unit, above 0; a value that equals it is within it.
type Bound struct {
	Quantity Quantity
	Limit    float64
}

// Kept says whether a request keeps a bound. One for which the quantity is not defined, such as the TPOT of one token, keeps it.
func (b Bound) Kept(v *Values) bool {
	if b.Quantity.LargerIsBetter() {
		return !(v[b.Quantity] < b.Limit)
	}
	return !(v[b.Quantity] > b.Limit)
}

// Worse is the worse of two values of the bounded quantity, of which one may be undefined.
func (b Bound) Worse(v, other float64) float64 {
	switch {
	case math.IsNaN(v):
		return other
	case math.IsNaN(other):
		return v
	case b.Quantity.LargerIsBetter():
		return min(v, other)
	}
	return max(v, other)
}

// Good says whether a finished request is good: it ended ok and keeps every bound.
func (s SLO) Good(o Outcome, v *Values) bool {
	return o == OK && !slices.ContainsFunc(s, func(b Bound) bool { return !b.Kept(v) })
}

// A request that did not end ok broke sloError, which stands after the quantities in an array of violations.
const (
	SLOError = int(NumQuantities)
	SLOKinds = SLOError + 1
)

// SLOName is a value of the label slo.
func SLOName(i int) string {
	if i == SLOError {
		return "error"
	}
	return Quantity(i).String()
}

// Violations tells which bounds a finished request with these values broke. One that failed has no latency to judge: it broke error, and
// nothing else. One that the workload itself cancelled breaks nothing and is not good either: no bound applies to it.
func (s SLO) Violations(o Outcome, v *Values) (broken [SLOKinds]bool) {
	if o != OK {
		broken[SLOError] = o != Cancelled
		return broken
	}
	for _, b := range s {
		broken[b.Quantity] = !b.Kept(v)
	}
	return broken
}

// String is the form that ParseSLO reads: "ttft:500ms,output_token_throughput_per_user:20"; "" when nothing is bounded.
func (s SLO) String() string {
	parts := make([]string, len(s))
	for i, b := range s {
		parts[i] = b.String()
	}
	return strings.Join(parts, ",")
}

// String is the form that ParseSLO reads.
func (b Bound) String() string { return b.Quantity.String() + ":" + b.Text(b.Limit) }

// Text writes a value of the bounded quantity: 500ms, 20.
func (b Bound) Text(value float64) string {
	if b.Quantity.Unit() == Milliseconds {
		return FromMilliseconds(value).String()
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

// FromMilliseconds is a duration of so many milliseconds, to the nanosecond.
func FromMilliseconds(ms float64) time.Duration { return time.Duration(math.Round(ms * 1e6)) }

// NewSLO puts bounds into their order.
func NewSLO(bounds ...Bound) SLO {
	slices.SortFunc(bounds, func(a, b Bound) int { return cmp.Compare(a.Quantity, b.Quantity) })
	return bounds
}

// Limit is that of a quantity, in its unit; 0 where it has none.
func (s SLO) Limit(q Quantity) float64 {
	for _, b := range s {
		if b.Quantity == q {
			return b.Limit
		}
	}
	return 0
}
