package measure

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"replayd/internal/stats"
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

// worse is the worse of two values of the bounded quantity, of which one may be undefined.
func (b Bound) worse(v, other float64) float64 {
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
	sloError = int(numQuantities)
	sloKinds = sloError + 1
)

// sloName is a value of the label slo.
func sloName(i int) string {
	if i == sloError {
		return "error"
	}
	return Quantity(i).String()
}

// violations tells which bounds a finished request with these values broke. One that failed has no latency to judge: it broke error, and
// nothing else. One that the workload itself cancelled breaks nothing and is not good either: nobody judges it.
func (s SLO) violations(o Outcome, v *Values) (broken [sloKinds]bool) {
	if o != OK {
		broken[sloError] = o != Cancelled
		return broken
	}
	for _, b := range s {
		broken[b.Quantity] = !b.Kept(v)
	}
	return broken
}

// A Miss is one bound of an SLO that requests of a run broke, or, as error, that requests did not end ok.
type Miss struct {
	SLO      string        // the quantity's name, or error
	Bound    Bound         // zero of error
	Requests int64         // of the expected ones; under error also those that were never sent
	Worst    float64       // in the quantity's unit; 0 of error
	P99      time.Duration // of all that have the quantity, those within the bound too; 0 where it is not known
}

// misses are the bounds that were broken, in the order of the quantities, then error.
func (f Figures) misses(worst *Values) (misses []Miss) {
	p99 := map[Quantity]stats.Durations{TTFT: f.TTFT, TPOT: f.TPOT, E2E: f.E2E, TTFTFromDue: f.TTFTFromDue, E2EFromDue: f.E2EFromDue, Lateness: f.Lateness}
	for _, b := range f.SLO {
		if n := f.Broken[b.Quantity.String()]; n > 0 {
			misses = append(misses, Miss{b.Quantity.String(), b, n, worst[b.Quantity], p99[b.Quantity].P99})
		}
	}
	if n := f.Expected - f.Outcomes[OK]; n > 0 {
		misses = append(misses, Miss{SLO: sloName(sloError), Requests: n})
	}
	return misses
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
		return duration(value).String()
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

func duration(ms float64) time.Duration { return time.Duration(math.Round(ms * 1e6)) }

// ParseSLO reads bounds by either name of a quantity: "ttft:500ms,tpot:50ms", and as AIPerf's --goodput has them
// "time_to_first_token:370 request_latency:648". Commas or blanks stand between them, = is as good as the colon, and an empty text
// bounds nothing. The error names every part that is wrong.
func ParseSLO(text string) (SLO, error) {
	var slo SLO
	var errs []error
	for part := range strings.FieldsFuncSeq(spaced.ReplaceAllString(text, "$1"), func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		i := strings.IndexAny(part, ":=")
		if i < 0 {
			errs = append(errs, fmt.Errorf("want NAME:VALUE such as ttft:500ms, got %q", part))
			continue
		}
		name, value := part[:i], part[i+1:]
		b, err := ParseBound(name, value)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		case b.Limit == 0:
			errs = append(errs, fmt.Errorf("%s: want a bound above 0, got %q", name, value))
		case slo.Limit(b.Quantity) > 0:
			errs = append(errs, fmt.Errorf("%s: want it once, got it again with %q", name, value))
		default:
			slo = append(slo, b)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return slo.sorted(), nil
}

// spaced is what parts a name from its value.
var spaced = regexp.MustCompile(`\s*([:=])\s*`)

// NewSLO puts bounds into their order.
func NewSLO(bounds ...Bound) SLO { return SLO(bounds).sorted() }

func (s SLO) sorted() SLO {
	slices.SortFunc(s, func(a, b Bound) int { return cmp.Compare(a.Quantity, b.Quantity) })
	return s
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

// A bound beyond these is a slip of the pen; up to them a time keeps every nanosecond.
const (
	mostTime  = 100 * time.Hour
	mostLimit = 1e12
)

// ParseBound reads one bound. A time has a unit, as in 500ms; a number without one is milliseconds under a name that AIPerf's
// files have. A bound of 0 is none. The error does not name the quantity.
func ParseBound(name, value string) (Bound, error) {
	q, known := QuantityOf(name)
	if !known {
		return Bound{}, fmt.Errorf("want %s, got %q", QuantityNames(), name)
	}
	number, err := strconv.ParseFloat(value, 64)
	switch unit := q.Unit(); {
	case unit == Milliseconds && err == nil && (name == q.Tag() || number == 0):
		number = float64(duration(min(number, 1e12))) / 1e6
	case unit == Milliseconds:
		d, err := time.ParseDuration(value)
		if err != nil {
			return Bound{}, fmt.Errorf("want a duration with its unit such as 500ms, got %q", value)
		}
		number = float64(d) / 1e6
	case err != nil:
		return Bound{}, fmt.Errorf("want a number of %s, got %q", unit, value)
	}
	if q.Unit() == Milliseconds && !(number >= 0 && number <= float64(mostTime)/1e6) {
		return Bound{}, fmt.Errorf("want a time from 0 to %v, got %q", mostTime, value)
	}
	if !(number >= 0 && number <= mostLimit) {
		return Bound{}, fmt.Errorf("want a number from 0 to %g, got %q", mostLimit, value)
	}
	return Bound{q, number}, nil
}

// QuantityNames lists what can be bounded, for people.
func QuantityNames() string {
	names := make([]string, len(quantities))
	for i, d := range quantities {
		names[i] = d.name
		if d.tag != d.name {
			names[i] += " (" + d.tag + ")"
		}
	}
	return "one of " + strings.Join(names, ", ")
}
