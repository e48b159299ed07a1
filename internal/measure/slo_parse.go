package measure

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"replayd/internal/scalar"
)

// ParseSLO parses bounds by either name of a quantity: "ttft:500ms,tpot:50ms", or AIPerf's --goodput syntax
// "time_to_first_token:370 request_latency:648". Commas or spaces separate bounds. "=" is the same as ":". An empty text
// has no bounds. The error names every invalid part.
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
	return NewSLO(slo...), nil
}

// spaced matches the separator of a name and its value.
var spaced = regexp.MustCompile(`\s*([:=])\s*`)

// Bounds above these are mistakes. Below them, a time keeps its nanoseconds.
const (
	maxTime  = 100 * time.Hour
	maxLimit = 1e12
)

// ParseBound parses one bound. A time has a unit, such as 500ms. A time without a unit is in milliseconds if the quantity
// has the name in AIPerf's files. A bound of 0 is off. The error does not name the quantity.
func ParseBound(name, value string) (Bound, error) {
	q, known := QuantityOf(name)
	if !known {
		return Bound{}, fmt.Errorf("want %s, got %q", QuantityNames(), name)
	}
	number, err := strconv.ParseFloat(value, 64)
	switch unit := q.Unit(); {
	case unit == Milliseconds && err == nil && (name == q.Tag() || number == 0):
		number = float64(FromMilliseconds(min(number, 1e12))) / 1e6
	case unit == Milliseconds:
		d, err := scalar.ParseDuration(value)
		if err != nil {
			return Bound{}, fmt.Errorf("want a duration with its unit such as 500ms, got %q", value)
		}
		number = float64(d) / 1e6
	case err != nil:
		return Bound{}, fmt.Errorf("want a number of %s, got %q", unit, value)
	}
	if q.Unit() == Milliseconds && !(number >= 0 && number <= float64(maxTime)/1e6) {
		return Bound{}, fmt.Errorf("want a time from 0 to %v, got %q", maxTime, value)
	}
	if !(number >= 0 && number <= maxLimit) {
		return Bound{}, fmt.Errorf("want a number from 0 to %g, got %q", maxLimit, value)
	}
	return Bound{q, number}, nil
}

// QuantityNames lists the quantities that can be bounded, as a text.
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
