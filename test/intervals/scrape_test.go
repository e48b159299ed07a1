package intervals_test

import (
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql/parser"
)

// A scraper reads a page at times 0, every, 2 every… With third it misses the third scrape, the sixth, and so on: nothing
// is stored then, as when Prometheus itself was away.
type scraper struct {
	every time.Duration
	third bool
}

func (s scraper) String() string {
	if s.third {
		return s.every.String() + " without each third"
	}
	return s.every.String()
}

// A page is a series of a test: what stands on a process's page at 0, own, 2 own and so on.
type page struct {
	labels labels.Labels
	values []parser.SequenceValue
	own    time.Duration
}

// counts tells the series that grow between two samples of a test: a counter that is 15 greater after 15 s has had each
// value between. What is no counter stays as it is until the test says another value.
var counts = regexp.MustCompile(`_(total|sum|count|bucket)$`)

// rounding finds the value of a counter that is less than the one before by an error of rounding, or gives -1. The steps
// are added one by one, so after 0+0.6x80 the counter is not 48.
func (p page) rounding() int {
	if !counts.MatchString(p.labels.Get(model.MetricNameLabel)) {
		return -1
	}
	for i := range len(p.values) - 1 {
		before, now := p.values[i].Value, p.values[i+1].Value
		if now < before && before-now < 1e-6*before {
			return i + 1
		}
	}
	return -1
}

// at is what is on the page at a time: a value, a marker for one that has been taken away, or nothing.
func (p page) at(t time.Duration) parser.SequenceValue {
	i := int(t / p.own)
	if i >= len(p.values) {
		return parser.SequenceValue{Omitted: true}
	}
	now := p.values[i]
	if i+1 == len(p.values) || now.Omitted || !counts.MatchString(p.labels.Get(model.MetricNameLabel)) {
		return now
	}
	if next := p.values[i+1]; !next.Omitted && next.Value > now.Value { // NaN is not, and a reset has no values between
		now.Value += (next.Value - now.Value) * float64(t%p.own) / float64(p.own)
	}
	return now
}

// gone says whether a series was taken from the page after one time and before another, and did not come back.
func (p page) gone(from, to time.Duration) bool {
	for i := min(int(to/p.own), len(p.values)-1); i >= 0 && time.Duration(i)*p.own > from; i-- {
		if !p.values[i].Omitted {
			return value.IsStaleNaN(p.values[i].Value)
		}
	}
	return false
}

// recorded says whether a series is on no page, because a rule records it.
func (p page) recorded() bool { return strings.Contains(p.labels.Get(model.MetricNameLabel), ":") }

// scrape stores what the scraper sees of a page. What a rule records is stored as the test has it.
func (s scraper) scrape(p page, into *memory) error {
	if p.recorded() {
		s = scraper{every: p.own}
	}
	last := -s.every
	end := time.Duration(len(p.values))*p.own + 2*s.every // a marker at the end is seen by a later scrape
	for n := 0; time.Duration(n)*s.every < end; n++ {
		if s.third && n%3 == 2 {
			continue
		}
		t := time.Duration(n) * s.every
		seen := p.at(t)
		if seen.Omitted && p.gone(last, t) {
			seen = parser.SequenceValue{Value: math.Float64frombits(value.StaleNaN)}
		}
		last = t
		if seen.Omitted {
			continue
		}
		if _, err := into.Append(0, p.labels, t.Milliseconds(), seen.Value); err != nil {
			return err
		}
	}
	return nil
}
