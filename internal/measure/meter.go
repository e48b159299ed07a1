package measure

import (
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// keptRemoved is how many removed workloads keep their counts, so that one that returns continues where it stood.
const keptRemoved = 100

// maxLabelBytes bounds the one label value that comes from a server.
const maxLabelBytes = 256

// Labels name a workload on /metrics. All three come from the configuration.
type Labels struct {
	Workload string
	Target   string
	Model    string // as configured; empty when the server's own is used
}

// TraceInfo is what /metrics says about the trace of a workload.
type TraceInfo struct {
	Path           string
	Format         string
	SHA256         string // hexadecimal; the first 12 digits are shown
	Requests       int
	BlockTokens    int     // 0 when the rows have no blocks
	PrefixHitRatio float64 // 0 to 1, by tokens; NaN where it is not known
}

// A Shard is this process among those that share a workload's trace; the zero value has all of it.
type Shard struct{ Index, Of int }

// WorkloadOptions are what the series of a workload depend on beside its labels.
type WorkloadOptions struct {
	SLO        SLO
	Objective  float64 // share of the requests that should be good, above 0 and below 1
	Shard      Shard
	Trace      TraceInfo
	FreeOutput bool // the server may stop earlier than the trace says (output: max, free): that is no mismatch
}

// A Meter holds the client-side series of all workloads. Its methods may be called from several goroutines at once.
type Meter struct {
	RecordErrors prometheus.Counter // records that could not be written; for NewSink

	hists [numHists]*prometheus.HistogramVec

	mu      sync.Mutex
	series  map[Labels]*series // live ones, and the removed ones that are kept
	removed []*series          // without users, the one longest gone first
	targets map[string]targetInfo
}

type targetInfo struct{ model, api string }

// NewMeter registers the client-side series with reg and panics when they are there already.
func NewMeter(reg prometheus.Registerer) *Meter {
	m := &Meter{
		RecordErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace,
			Name:      "record_errors_total",
			Help:      "Records of finished requests that could not be written.",
		}),
		series:  map[Labels]*series{},
		targets: map[string]targetInfo{},
	}
	for i, o := range histOpts {
		m.hists[i] = prometheus.NewHistogramVec(o, threeLabels)
	}
	reg.MustRegister(m, m.RecordErrors)
	return m
}

// Workload puts the series of a workload on the page: at 0, or where they stood when one with the same labels was
// removed. Two workloads with the same labels, such as an old one that drains while its successor starts, count into
// the same series; the gauges then are the later one's, but
// for the guard's, which is open while either is.
func (m *Meter) Workload(l Labels, o WorkloadOptions) *Workload {
	l = Labels{Workload: valid(l.Workload), Target: valid(l.Target), Model: valid(l.Model)}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, known := m.series[l]
	if !known {
		s = m.newSeries(l)
		m.series[l] = s
	}
	if s.users == 0 {
		m.removed = slices.DeleteFunc(m.removed, func(r *series) bool { return r == s })
	}
	s.users++
	s.configure(o)
	return &Workload{s: s, slo: o.SLO, freeOutput: o.FreeOutput}
}

// Remove takes a workload off the page, once nothing of it waits or is in flight. Its counts are kept for a return
// until 100 others were removed after it. A second call for the same Workload does nothing.
func (m *Meter) Remove(w *Workload) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.removed {
		return
	}
	w.removed = true
	for _, limit := range guardLimits {
		w.Guard(limit, false)
	}
	s := w.s
	if s.users--; s.users > 0 {
		return
	}
	s.release()
	m.removed = append(m.removed, s)
	if len(m.removed) > keptRemoved {
		oldest := m.removed[0]
		m.removed = slices.Delete(m.removed, 0, 1)
		delete(m.series, oldest.labels)
		for _, h := range m.hists {
			h.DeleteLabelValues(oldest.values...)
		}
	}
	for _, other := range m.series {
		if other.users > 0 && other.labels.Target == s.labels.Target {
			return
		}
	}
	delete(m.targets, s.labels.Target)
}

// TargetInfo says which model a target's server lists (cut to 256 bytes) and which API it is spoken to with. A later
// call for the same target replaces the earlier. It is on the page while a workload has that target.
func (m *Meter) TargetInfo(target, model, api string) {
	if len(model) > maxLabelBytes {
		model = model[:maxLabelBytes]
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.targets[valid(target)] = targetInfo{model: valid(model), api: valid(api)}
}

// Describe implements prometheus.Collector.
func (m *Meter) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range plainDescs {
		ch <- d
	}
	for _, h := range m.hists {
		h.Describe(ch)
	}
}

// Collect implements prometheus.Collector. All counts of a workload are read under one lock, so that
// expected = finished + dropped (without filtered) + in flight + waiting holds at every scrape.
func (m *Meter) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	live := make([]*series, 0, len(m.series))
	targets := map[string]targetInfo{}
	for _, s := range m.series {
		if s.users == 0 {
			continue
		}
		live = append(live, s)
		if t, known := m.targets[s.labels.Target]; known {
			targets[s.labels.Target] = t
		}
	}
	m.mu.Unlock()

	for name, t := range targets {
		ch <- prometheus.MustNewConstMetric(descTarget, prometheus.GaugeValue, 1, name, t.model, t.api)
	}
	for _, s := range live {
		s.collect(ch)
	}
}

// valid makes a label value that cannot fail a scrape.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
