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

// sameReading is far below the second that lies between two readings, and above what a clock's fraction makes of one.
const sameReading = 100 * time.Millisecond

// Bounds of a Sampler: 128 MiB.
const (
	mostSeries  = 1024
	mostSamples = 4096 // of a series; when there are more, every other one is left out, so that the whole run stays covered
)

// bookkeeping are the families that say how the reading went; they are no figures of the server.
var bookkeeping = regexp.MustCompile(`_(up|info|restarts_total|age_seconds|address_shared|duplicate_devices|scrape_[a-z_]+)$`)

// A Sampler keeps what the engine and the GPUs say while a run goes on. It is for one goroutine.
type Sampler struct {
	series map[string]*result.ServerSeries
	beyond map[string]bool // series that are not kept, at most as many again
	every  int             // looks per sample that is kept
	looks  int
	times  int // samples kept, of the series that has most
}

// Families of the engine and of GPUs begin so.
const (
	engineSeries = "replayd_engine_"
	gpuSeries    = "replayd_gpu_"
)

// NewSampler makes an empty sampler.
func NewSampler() *Sampler {
	return &Sampler{series: map[string]*result.ServerSeries{}, beyond: map[string]bool{}, every: 1}
}

// Take adds what was gathered at an instant. Of a histogram it keeps count and sum.
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

// A replicaKey is where values were read: a target, and of an engine which replica.
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

// agesOf are how long ago the figures on the page were read: so much before the page they count.
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
		return // nothing was read since
	}
	b.Times, b.Values = append(b.Times, at), append(b.Values, value)
}

// unitOf is the base unit at the end of a name, as Prometheus' conventions have it; "" where there is none.
func unitOf(name string) string {
	name = strings.TrimSuffix(name, "_total")
	last := name[strings.LastIndexByte(name, '_')+1:]
	if slices.Contains([]string{"seconds", "tokens", "bytes", "ratio", "watts", "joules", "celsius", "hertz"}, last) {
		return last
	}
	return ""
}

// thin leaves out every other sample, but never the last one.
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

// Beyond is how many series were too many to keep, as far as they were counted.
func (s *Sampler) Beyond() int { return len(s.beyond) }

// Series are all that was seen, by name and labels.
func (s *Sampler) Series() []result.ServerSeries {
	var all []result.ServerSeries
	for _, key := range slices.Sorted(maps.Keys(s.series)) {
		all = append(all, *s.series[key])
	}
	return all
}

// CountGPUs is how many GPUs were seen.
func CountGPUs(all []result.ServerSeries) int {
	seen := map[string]bool{}
	for _, b := range all {
		if b.GPU && b.Labels["uuid"] != "" {
			seen[b.Labels["uuid"]] = true
		}
	}
	return len(seen)
}
