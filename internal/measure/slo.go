package measure

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An SLO lists the bounds that an ok request must meet to be good, in the order of the quantities. Each quantity has at
// most one bound.
type SLO []Bound

// A Bound is the largest value of a quantity that meets an SLO, or the smallest if larger is better. The limit is above 0
// and in the quantity's unit. A value that equals the limit meets it.
type Bound struct {
	Quantity Quantity
	Limit    float64
}

// Kept reports whether a request meets a bound. A request for which the quantity is undefined, such as the TPOT of one
// token, meets it. It is not clear where one read held so many tokens that only the ends are known between which TPOT lies, and
// the bound lies between them, too; and where the second token came with the first, at any time since the write.
func (b Bound) Kept(v *Values) (kept, known bool) {
	if b.Quantity.LargerIsBetter() {
		kept = !(v[b.Quantity] < b.Limit)
	} else {
		kept = !(v[b.Quantity] > b.Limit)
	}
	if b.Quantity == SecondToken && math.IsNaN(v[SecondToken]) && v[OutputLength] > 1 {
		return true, !(v[TTFT] > b.Limit)
	}
	most := v[MostTPOT]
	return kept, !kept || math.IsNaN(most) || !(b.Quantity == TPOT && most > b.Limit || b.Quantity == PerUser && 1e3/most < b.Limit)
}

// Worse returns the worse of two values of the bounded quantity. One of them may be undefined.
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

// Good reports whether a finished request is good: it ended ok and meets every bound. It cannot be judged where that hangs on
// a bound that is not clear, and if no latency is known.
func (s SLO) Good(o Outcome, v *Values) (good, judged bool) {
	switch {
	case o != OK:
		return false, true
	case math.IsNaN(v[E2E]):
		return false, false
	}
	judged = true
	for _, b := range s {
		kept, known := b.Kept(v)
		if !kept {
			return false, true
		}
		judged = judged && known
	}
	return judged, judged
}

// sloError is the index of requests that did not end ok, after the quantities, in an array of violations.
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

// Violations returns the bounds that a finished request missed. A failed request has no latency to judge: it only missed
// error. A request that the workload itself cancelled missed nothing and is not good either.
func (s SLO) Violations(o Outcome, v *Values) (broken [SLOKinds]bool) {
	if o != OK {
		broken[SLOError] = o != Cancelled
		return broken
	}
	for _, b := range s {
		kept, _ := b.Kept(v)
		broken[b.Quantity] = !kept
	}
	return broken
}

// String returns the SLO in the syntax of ParseSLO: "ttft:500ms,output_token_throughput_per_user:20"; "" without bounds.
func (s SLO) String() string {
	parts := make([]string, len(s))
	for i, b := range s {
		parts[i] = b.String()
	}
	return strings.Join(parts, ",")
}

// String returns the bound in the syntax of ParseSLO.
func (b Bound) String() string { return b.Quantity.String() + ":" + b.Text(b.Limit) }

// Text formats a value of the bounded quantity: 500ms, 20.
func (b Bound) Text(value float64) string {
	if b.Quantity.Unit() == Milliseconds {
		return FromMilliseconds(value).String()
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

// FromMilliseconds converts milliseconds to a duration, rounded to the nanosecond.
func FromMilliseconds(ms float64) time.Duration { return time.Duration(math.Round(ms * 1e6)) }

// NewSLO returns an SLO of bounds, sorted by quantity.
func NewSLO(bounds ...Bound) SLO {
	slices.SortFunc(bounds, func(a, b Bound) int { return cmp.Compare(a.Quantity, b.Quantity) })
	return bounds
}

// Limit returns the limit of a quantity in its unit; 0 if it has no bound.
func (s SLO) Limit(q Quantity) float64 {
	for _, b := range s {
		if b.Quantity == q {
			return b.Limit
		}
	}
	return 0
}
