package export

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"replayd/internal/result"
	"replayd/internal/scrape"
)

// Limits of a Sampler. Together they are 128 MiB.
const (
	maxSeries  = 1024
	maxSamples = 4096 // per series; beyond that, every other sample is dropped, so the samples still cover the whole run
)

// A Sampler keeps the metrics of the engine and the GPUs during a run. It is not safe for concurrent use.
type Sampler struct {
	series map[string]*result.ServerSeries
	beyond map[string]bool         // series that are not kept, at most maxSeries
	pages  map[[2]string]time.Time // the first whole one of each engine, by target and address
	every  int                     // calls of Take per sample that is kept
	looks  int
	times  int // samples of the longest series
}

// NewSampler returns an empty Sampler.
func NewSampler() *Sampler {
	return &Sampler{
		series: map[string]*result.ServerSeries{}, beyond: map[string]bool{}, pages: map[[2]string]time.Time{},
		every: 1,
	}
}

// A sample is one value of a series that is kept.
type sample struct {
	*scrape.Series
	key   string // of its series
	name  string
	kind  result.SeriesKind
	at    time.Time
	value float64
}

// Take adds the readings of engines and GPUs since the call before. It keeps the count and the sum of a histogram.
func (s *Sampler) Take(values []scrape.Values) {
	s.looks++
	if (s.looks-1)%s.every != 0 {
		return
	}
	s.End(values)
	if s.times++; s.times >= maxSamples {
		s.thin()
	}
}

// End adds the readings of engines after the last end of the run.
func (s *Sampler) End(values []scrape.Values) {
	for _, one := range s.samples(values) {
		s.add(one)
	}
}

// samples returns the values that can be kept, in an order that is the same in each run: of too many, each run keeps
// the same ones.
func (s *Sampler) samples(values []scrape.Values) []sample {
	found := map[string]sample{}
	for _, v := range values {
		if v.Up && len(v.Series) > 0 {
			if page := pageOf(labelsOf(v.Series[0])); s.pages[page].IsZero() {
				s.pages[page] = v.At
			}
		}
		for _, one := range v.Series {
			key := ""
			for _, l := range one.Labels {
				key += "\x00" + l.GetName() + "\x00" + l.GetValue()
			}
			keep := func(suffix string, kind result.SeriesKind, value float64) {
				name := one.Name + suffix
				found[name+key] = sample{one, name + key, name, kind, v.At, value}
			}
			switch h := one.Histogram; one.Kind {
			case scrape.Histogram:
				keep("_count", result.Counter, float64(h.GetSampleCount()))
				keep("_sum", result.Counter, h.GetSampleSum())
			case scrape.Counter, scrape.Gauge:
				keep("", result.SeriesKind(one.Kind), one.Value)
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b sample) int { return cmp.Compare(a.key, b.key) })
}

func labelsOf(s *scrape.Series) map[string]string {
	labels := map[string]string{}
	for _, l := range s.Labels {
		labels[l.GetName()] = l.GetValue()
	}
	return labels
}

// pageOf identifies the page of an engine.
func pageOf(labels map[string]string) [2]string {
	return [2]string{labels["target"], labels["address"]}
}

func (s *Sampler) add(one sample) {
	b := s.series[one.key]
	if b == nil {
		if len(s.series) >= maxSeries {
			if len(s.beyond) < maxSeries {
				s.beyond[one.key] = true
			}
			return
		}
		labels := labelsOf(one.Series)
		b = &result.ServerSeries{
			Source: labels["target"], Name: one.name, Help: one.Help, Unit: unitOf(one.Name), Labels: labels, Kind: one.kind,
			GPU: strings.HasPrefix(one.Name, "replayd_gpu_"),
		}
		s.series[one.key] = b
		// Engines show some counters only from the first request on: on a page without them they were 0.
		first := s.pages[pageOf(labels)]
		if one.kind == result.Counter && !b.GPU && !first.IsZero() && first.Before(one.at) {
			b.Times, b.Values = []time.Time{first}, []float64{0}
		}
	}
	if n := len(b.Times); n > 0 && !one.at.After(b.Times[n-1]) {
		return // no new reading
	}
	b.Times, b.Values = append(b.Times, one.at), append(b.Values, one.value)
}

// unitOf returns the base unit at the end of a name, by Prometheus' naming conventions, or "".
func unitOf(name string) string {
	if strings.HasSuffix(name, "_bytes_per_second") {
		return "bytes/s"
	}
	name = strings.TrimSuffix(name, "_total")
	last := name[strings.LastIndexByte(name, '_')+1:]
	if slices.Contains([]string{"seconds", "tokens", "bytes", "ratio", "watts", "joules", "celsius", "hertz"}, last) {
		return last
	}
	return ""
}

// thin drops every other sample but keeps the first and the last one.
func (s *Sampler) thin() {
	s.every *= 2
	s.times = 0
	for _, b := range s.series {
		n := 0
		for i := range b.Times {
			if i == 0 || (len(b.Times)-1-i)%2 == 0 {
				b.Times[n], b.Values[n] = b.Times[i], b.Values[i]
				n++
			}
		}
		b.Times, b.Values = b.Times[:n], b.Values[:n]
		s.times = max(s.times, n)
	}
}

// Beyond returns the number of series that are not kept. The count stops at 1024.
func (s *Sampler) Beyond() int { return len(s.beyond) }

// Series returns all series, sorted by name and labels. Those of engines are those of the time from first to last, the
// first send and the last end of the run.
func (s *Sampler) Series(first, last time.Time) []result.ServerSeries {
	var all []result.ServerSeries
	for _, key := range slices.Sorted(maps.Keys(s.series)) {
		b := *s.series[key]
		if !b.GPU && first.Before(last) {
			b.Times, b.Values = within(b, first, last)
		}
		all = append(all, b)
	}
	return all
}

// moment is the least time over which growth is a rate: half the time between two readings.
const moment = 500 * time.Millisecond

// within returns the readings of an engine's series from first to last. The latest reading before first is that of
// first, and the latest one after last that of last: what the engine counted between was the run's, and the time that
// the readings took was not. A gauge has only readings of the run, or without one the latest before it.
func within(b result.ServerSeries, first, last time.Time) (times []time.Time, values []float64) {
	add := func(at time.Time, v float64) { times, values = append(times, at), append(values, v) }
	before, after := -1, -1
	for i, at := range b.Times {
		switch {
		case !at.After(first):
			before = i
		case !at.Before(last):
			after = i
		}
	}
	counts := b.Kind == result.Counter
	if before >= 0 && counts {
		add(first, b.Values[before])
	}
	for i, at := range b.Times {
		near := before >= 0 && at.Sub(first) < moment || after >= 0 && last.Sub(at) < moment
		if at.Before(first) || at.After(last) || counts && near {
			continue
		}
		add(at, b.Values[i])
	}
	switch {
	case counts && after >= 0:
		add(last, b.Values[after])
	case len(times) == 0 && before >= 0:
		add(first, b.Values[before])
	}
	return times, values
}

// CountGPUs returns the number of GPUs in the series.
func CountGPUs(all []result.ServerSeries) int {
	seen := map[string]bool{}
	for _, b := range all {
		if b.GPU && b.Labels["uuid"] != "" {
			seen[b.Labels["uuid"]] = true
		}
	}
	return len(seen)
}
