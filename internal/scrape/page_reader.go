package scrape

import (
	"math"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// A reader fills a page and enforces the bounds.
type reader struct {
	page   *Page
	wanted func(name string) bool
	kept   int
	seen   map[uint64]struct{} // hashes of the labels, names included, of all kept samples

	lastName string // the last argument of wants: samples of one name are adjacent
	lastWant bool

	last  string   // family of the latest line of text that could be read
	doubt *doubted // the line before this one, of a family that is not known for sure
	lines int      // of text that cannot be read
	ended bool     // OpenMetrics' # EOF was there
}

// wants reports whether samples with this name are kept. It does not keep name itself.
func (r *reader) wants(name []byte) bool {
	if string(name) != r.lastName || r.lastName == "" {
		r.lastName = string(name)
		r.lastWant = !strings.HasSuffix(r.lastName, "_created") && (r.lastName == processStart || r.wanted(r.lastName))
	}
	return r.lastWant
}

func (r *reader) count() error {
	r.page.Total++
	if r.page.Total > maxSamples {
		return errorOf(ReasonTooLarge, "want a page of at most %d samples, got more", maxSamples)
	}
	return nil
}

// add keeps one sample if it is wanted. lset includes the name.
func (r *reader) add(lset labels.Labels, value float64) error {
	name := lset.Get(model.MetricNameLabel)
	if !r.wants([]byte(name)) {
		return nil
	}
	if hostile(lset) {
		r.drops(name)
		return nil
	}
	if name == processStart {
		// Of several processes the latest start counts: that process was restarted.
		if start := startTime(value); start.After(r.page.Start) {
			r.page.Start = start
		}
		if !r.wanted(name) {
			return nil
		}
	}
	if r.repeats(name, lset) {
		r.page.Twice++
		return nil
	}
	if r.kept++; r.kept > maxKept {
		return errorOf(ReasonTooLarge, "want a page with at most %d samples that are of use, got more; the last is %q", maxKept, clip(name, 80))
	}
	list, ok := r.page.Samples[name]
	if !ok {
		name = strings.Clone(name) // else the key keeps the labels of its first sample alive
	}
	r.page.Samples[name] = append(list, Sample{Labels: lset.DropReserved(isName), Value: value})
	return nil
}

// repeats reports whether an earlier sample has the same name and labels. The first sample counts, as in Prometheus,
// which rejects a second one with the same timestamp (scrape/scrape.go, ErrDuplicateSampleForTimestamp).
func (r *reader) repeats(name string, lset labels.Labels) bool {
	hash := lset.Hash()
	if _, ok := r.seen[hash]; !ok {
		if r.seen == nil {
			r.seen = map[uint64]struct{}{}
		}
		r.seen[hash] = struct{}{}
		return false
	}
	rest := lset.DropReserved(isName)
	for _, s := range r.page.Samples[name] { // different labels can have the same hash
		if labels.Equal(s.Labels, rest) {
			return true
		}
	}
	return false
}

// labelsOf returns the labels of the parser's current sample, including the name.
func labelsOf(p textparse.Parser) (lset labels.Labels) {
	p.Labels(&lset)
	return lset
}

func isName(label string) bool { return label == model.MetricNameLabel }

// hostile reports whether labels are over the bounds or contain a duplicate label name, which Prometheus rejects.
func hostile(lset labels.Labels) bool {
	n, long := 0, false
	lset.Range(func(l labels.Label) {
		n++
		long = long || len(l.Name) > maxValueBytes || len(l.Value) > maxValueBytes
	})
	_, twice := lset.HasDuplicateLabelNames()
	return long || twice || n > maxLabels+1 // the name is a label too
}

// drops counts a sample that is over the bounds.
func (r *reader) drops(name string) {
	if r.page.Bad++; r.page.first == nil {
		r.page.first = errorOf(ReasonParse, "a sample of %q is over the bounds", clip(name, 80))
	}
	r.damage(familyOf(name))
}

// damage says that a line or a metric of a family could not be read.
func (r *reader) damage(family string) {
	if family == "" {
		return
	}
	if r.page.damaged == nil {
		r.page.damaged = map[string]bool{}
	}
	r.page.damaged[family] = true
}

// dropDamaged removes the families with a line or a metric that could not be read: part of a histogram or of a sum would be wrong.
func (r *reader) dropDamaged() {
	for name := range r.page.Samples {
		if r.page.damaged[familyOf(name)] {
			delete(r.page.Samples, name)
		}
	}
	if r.page.damaged[familyOf(processStart)] {
		r.page.Start = time.Time{}
	}
}

// familyOf returns the family name of a sample: its name without the suffix.
func familyOf(name string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count", "_total", "_created"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && base != "" {
			return base
		}
	}
	return name
}

// startTime converts seconds since 1970. A time before 2000 or after 2199 is an error, for instance of a server without
// a clock, and returns the zero time.
func startTime(seconds float64) time.Time {
	if !(seconds >= 946_684_800 && seconds < 7_258_118_400) { // this form also rejects NaN
		return time.Time{}
	}
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(fraction*1e9))
}
