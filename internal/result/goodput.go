package result

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"replayd/internal/measure"
)

// ParseGoodput reads AIPerf's --goodput: "time_to_first_token:370 request_latency:648", metrics by their tags and bounds in
// their units. Times and lengths keep a bound that is not below them, output_token_throughput_per_user one that is not above
// it. The error names every part that is wrong.
func ParseGoodput(text string) ([]Bound, error) {
	var bounds []Bound
	var errs []error
	seen := map[string]bool{}
	for part := range strings.FieldsSeq(text) {
		tag, number, both := strings.Cut(part, ":")
		value, err := strconv.ParseFloat(number, 64)
		_, known := QuantityOf(tag)
		switch {
		case !both:
			errs = append(errs, fmt.Errorf("goodput: want METRIC:VALUE such as time_to_first_token:370, got %q", part))
		case !known:
			errs = append(errs, fmt.Errorf("goodput: want one of %s, got %q", strings.Join(tags(), ", "), tag))
		case err != nil || value < 0 || math.IsNaN(value) || math.IsInf(value, 0):
			errs = append(errs, fmt.Errorf("goodput: %s: want a number ≥ 0, got %q", tag, number))
		case seen[tag]:
			errs = append(errs, fmt.Errorf("goodput: %s: want it once, got it again with %q", tag, number))
		default:
			seen[tag] = true
			bounds = append(bounds, Bound{Metric: tag, Value: value})
		}
	}
	if len(errs) == 0 && len(bounds) == 0 {
		errs = append(errs, fmt.Errorf("goodput: want METRIC:VALUE such as time_to_first_token:370, got %q", text))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return bounds, nil
}

// QuantityOf finds a quantity by its tag. It is false where there is none of that name.
func QuantityOf(tag string) (Quantity, bool) {
	for _, q := range Quantities {
		if q.Tag == tag {
			return q, true
		}
	}
	return Quantity{}, false
}

func tags() []string {
	all := make([]string, len(Quantities))
	for i, q := range Quantities {
		all[i] = q.Tag
	}
	return all
}

// Keeps says whether a request is goodput: it ended ok and keeps every bound. As AIPerf has it, a request for which a bounded
// metric is not defined does not keep it, such as an inter-token latency of one token.
func Keeps(r Row, bounds []Bound) bool {
	if r.Outcome != measure.OK {
		return false
	}
	for _, b := range bounds {
		q, known := QuantityOf(b.Metric)
		if !known {
			return false
		}
		switch v := q.Value(r); {
		case math.IsNaN(v), q.Larger && v < b.Value, !q.Larger && v > b.Value:
			return false
		}
	}
	return true
}

// String is the form that ParseGoodput reads.
func (b Bound) String() string { return b.Metric + ":" + strconv.FormatFloat(b.Value, 'g', -1, 64) }

// Servers is how many servers such as the one that was measured serve a number of requests a second within all bounds: the
// rate over the goodput, rounded up. False when nothing was goodput.
func Servers(requests, goodput float64) (int, bool) {
	if !(goodput > 0) || !(requests >= 0) || requests/goodput > math.MaxInt32 {
		return 0, false
	}
	return int(math.Ceil(requests / goodput)), true
}
