package export

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"replayd/internal/result"
)

// sameReading is the tolerance for the times of one reading. It is far below the second between two readings, and above
// the rounding error of a time.
const sameReading = 100 * time.Millisecond

// Limits of a Sampler. Together they are 128 MiB.
const (
	mostSeries  = 1024
	mostSamples = 4096 // per series; beyond that, every other sample is dropped, so the samples still cover the whole run
)

// bookkeeping matches families about the scrape. They are not metrics of the server.
var bookkeeping = regexp.MustCompile(`_(up|info|restarts_total|age_seconds|address_shared|duplicate_devices|scrape_[a-z_]+)$`)

// A Sampler keeps the metrics of the engine and the GPUs during a run. It is not safe for concurrent use.
type Sampler struct {
	series map[string]*result.ServerSeries
	beyond map[string]bool // series that are not kept, at most mostSeries
	every  int             // calls of Take per sample that is kept
	looks  int
	times  int // samples of the longest series
}

// Prefixes of the families of the engine and of the GPUs.
const (
	engineSeries = "replayd_engine_"
	gpuSeries    = "replayd_gpu_"
)

// NewSampler returns an empty Sampler.
func NewSampler() *Sampler {
	return &Sampler{series: map[string]*result.ServerSeries{}, beyond: map[string]bool{}, every: 1}
}

// Take adds the families gathered at an instant. It keeps the count and the sum of a histogram.
func (s *Sampler) Take(at time.Time, families []*dto.MetricFamily) {
	s.looks++
	if (s.looks-1)%s.every != 0 {
		return
	}
	ages := agesOf(families)
	for _, f := range families {
		gpu := strings.HasPrefix(f.GetName(), gpuSeries)
		if (gpu || strings.HasPrefix(f.GetName(), engineSeries)) && !bookkeeping.MatchString(f.GetName()) {
			s.family(at, ages, f, gpu)
		}
	}
	if s.times++; s.times >= mostSamples {
		s.thin()
	}
}

// A replicaKey is a source of values: a target and, for an engine, the replica.
type replicaKey struct{ target, replica string }

func replicaOf(m *dto.Metric) (r replicaKey) {
	for _, l := range m.GetLabel() {
		switch l.GetName() {
		case "target":
			r.target = l.GetValue()
		case "replica":
			r.replica = l.GetValue()
		}
	}
	return r
}

// agesOf returns the age of the values of each source: the time between their reading and the page.
func agesOf(families []*dto.MetricFamily) map[replicaKey]time.Duration {
	ages := map[replicaKey]time.Duration{}
	for _, f := range families {
		if f.GetName() != engineSeries+"age_seconds" && f.GetName() != gpuSeries+"age_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			ages[replicaOf(m)] = time.Duration(m.GetGauge().GetValue() * float64(time.Second))
		}
	}
	return ages
}

func (s *Sampler) family(page time.Time, ages map[replicaKey]time.Duration, f *dto.MetricFamily, gpu bool) {
	for _, m := range f.GetMetric() {
		at := page.Add(-ages[replicaOf(m)])
		switch f.GetType() {
		case dto.MetricType_COUNTER:
			s.add(at, f, f.GetName(), result.Counter, m, gpu, m.GetCounter().GetValue())
		case dto.MetricType_GAUGE:
			s.add(at, f, f.GetName(), result.Gauge, m, gpu, m.GetGauge().GetValue())
		case dto.MetricType_HISTOGRAM, dto.MetricType_GAUGE_HISTOGRAM:
			count := m.GetHistogram().GetSampleCountFloat()
			if count == 0 {
				count = float64(m.GetHistogram().GetSampleCount())
			}
			s.add(at, f, f.GetName()+"_count", result.Counter, m, gpu, count)
			s.add(at, f, f.GetName()+"_sum", result.Counter, m, gpu, m.GetHistogram().GetSampleSum())
		}
	}
}

func (s *Sampler) add(at time.Time, f *dto.MetricFamily, name string, kind result.BesideKind, m *dto.Metric, gpu bool, value float64) {
	labels := map[string]string{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	key := name
	for _, l := range slices.Sorted(maps.Keys(labels)) {
		key += "\x00" + l + "\x00" + labels[l]
	}
	b := s.series[key]
	if b == nil {
		if len(s.series) >= mostSeries {
			if len(s.beyond) < mostSeries {
				s.beyond[key] = true
			}
			return
		}
		b = &result.ServerSeries{
			Source: labels["target"], Name: name, Help: f.GetHelp(), Unit: unitOf(f.GetName()), Labels: labels, Kind: kind, GPU: gpu,
		}
		s.series[key] = b
	}
	if n := len(b.Times); n > 0 && at.Sub(b.Times[n-1]) < sameReading {
		return // no new reading
	}
	b.Times, b.Values = append(b.Times, at), append(b.Values, value)
}

// unitOf returns the base unit at the end of a name, by Prometheus' naming conventions, or "".
func unitOf(name string) string {
	name = strings.TrimSuffix(name, "_total")
	last := name[strings.LastIndexByte(name, '_')+1:]
	if slices.Contains([]string{"seconds", "tokens", "bytes", "ratio", "watts", "joules", "celsius", "hertz"}, last) {
		return last
	}
	return ""
}

// thin drops every other sample but keeps the last one.
func (s *Sampler) thin() {
	s.every *= 2
	s.times /= 2
	for _, b := range s.series {
		n := 0
		for i := range b.Times {
			if (len(b.Times)-1-i)%2 == 0 {
				b.Times[n], b.Values[n] = b.Times[i], b.Values[i]
				n++
			}
		}
		b.Times, b.Values = b.Times[:n], b.Values[:n]
	}
}

// Beyond returns the number of series that are not kept. The count stops at 1024.
func (s *Sampler) Beyond() int { return len(s.beyond) }

// Series returns all series, sorted by name and labels.
func (s *Sampler) Series() []result.ServerSeries {
	var all []result.ServerSeries
	for _, key := range slices.Sorted(maps.Keys(s.series)) {
		all = append(all, *s.series[key])
	}
	return all
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
