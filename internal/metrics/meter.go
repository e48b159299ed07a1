package metrics

import (
	"slices"
	"strings"
	"sync"

	"replayd/internal/measure"

	"github.com/prometheus/client_golang/prometheus"
)

// keptRemoved is how many removed workloads keep their counts, so that one that returns continues where it stood.
const keptRemoved = 100

// Labels name a workload on /metrics.
type Labels struct {
	Workload string
	Target   string
	Model    string // as configured; empty when it is learnt, see WorkloadOptions
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
	SLO        measure.SLO
	Objective  float64 // share of the requests that should be good, above 0 and below 1
	Shard      Shard
	Trace      TraceInfo
	FreeOutput bool // the server may stop earlier than the trace says (output: max, free): that is no mismatch
	Sheds      bool // a request that finds no lane is dropped at once, as the workload chose (overload: drop): then it is not eligible

	// Target has its own series on the page while a workload has it; nil: there are none. With Learn the label model is the
	// one that the target was last heard to serve, and not that of Labels.
	Target *Target
	Learn  bool
}

// A Meter holds the client-side series of all workloads. Its methods may be called from several goroutines at once.
type Meter struct {
	RecordErrors prometheus.Counter // records that could not be written; for NewSink

	hists [numHists]*prometheus.HistogramVec

	mu      sync.Mutex
	series  map[Labels]*series // live ones, and the removed ones that are kept
	removed []*series          // without users, the one longest gone first
	targets map[string]*Target // of live workloads, by name; the latest where two have one name
}

// NewMeter registers the client-side series with reg and panics when they are there already.
func NewMeter(reg prometheus.Registerer) *Meter {
	m := &Meter{
		RecordErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace,
			Name:      "record_errors_total",
			Help:      "Records of finished requests that could not be written.",
		}),
		series:  map[Labels]*series{},
		targets: map[string]*Target{},
	}
	for i, o := range histOpts {
		m.hists[i] = prometheus.NewHistogramVec(o, threeLabels)
	}
	reg.MustRegister(m, m.RecordErrors)
	return m
}

// Workload puts the series of a workload on the page: at 0, or where they stood when one with the same labels was
// removed. Two workloads with the same labels, such as an old one that drains while its successor starts, count into
// the same series; the gauges then are the later one's, but for the guard's, which is open while either is.
func (m *Meter) Workload(l Labels, o WorkloadOptions) *Workload {
	l = Labels{Workload: valid(l.Workload), Target: valid(l.Target), Model: valid(l.Model)}
	m.mu.Lock()
	defer m.mu.Unlock()
	w := &Workload{options: o}
	if o.Target != nil {
		m.targets[l.Target] = o.Target
	}
	if o.Learn {
		l.Model = o.Target.label
		w.parts = m.earlier(l)
		o.Target.learners = append(o.Target.learners, w)
	}
	m.enter(w, l)
	return w
}

// enter makes the series of the labels those that a workload counts in from now on. The lock is held.
func (m *Meter) enter(w *Workload, l Labels) {
	s, known := m.series[l]
	if !known {
		s = m.newSeries(l)
		if len(w.parts) > 0 {
			s.began = w.now().began
		}
		m.series[l] = s
	}
	m.use(s)
	s.current++
	s.configure(w.options)
	w.parts = append(w.parts, &part{s: s})
	s.change(func(n *counts) { n.latest = w })
}

// use lets one more workload have a series. The lock is held.
func (m *Meter) use(s *series) {
	if s.users == 0 {
		m.removed = slices.DeleteFunc(m.removed, func(r *series) bool { return r == s })
	}
	s.users++
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
	for _, limit := range allGuardLimits {
		w.Guard(limit, false)
	}
	target := w.now().labels.Target
	w.now().current--
	for _, p := range w.parts {
		m.drop(p.s)
	}
	if t := w.options.Target; t != nil {
		t.learners = slices.DeleteFunc(t.learners, func(l *Workload) bool { return l == w })
	}
	for _, other := range m.series {
		if other.users > 0 && other.labels.Target == target {
			return
		}
	}
	delete(m.targets, target)
}

// drop takes a series from a workload; one that no workload has is kept for a while. The lock is held.
func (m *Meter) drop(s *series) {
	if s.users--; s.users > 0 {
		return
	}
	s.release()
	m.removed = append(m.removed, s)
	if len(m.removed) > keptRemoved {
		oldest := m.removed[0]
		m.removed = slices.Delete(m.removed, 0, 1)
		m.forget(oldest)
	}
}

// forget removes a series that no workload has. The lock is held.
func (m *Meter) forget(s *series) {
	delete(m.series, s.labels)
	for _, h := range m.hists {
		h.DeleteLabelValues(s.values...)
	}
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
	type shown struct {
		*series
		now bool
	}
	m.mu.Lock()
	live := make([]shown, 0, len(m.series))
	targets := map[string]*Target{}
	for _, s := range m.series {
		if s.users == 0 {
			continue
		}
		live = append(live, shown{s, s.current > 0})
		if t := m.targets[s.labels.Target]; t != nil {
			targets[s.labels.Target] = t
		}
	}
	for _, t := range targets {
		t.collectInfo(ch)
	}
	m.mu.Unlock()

	for name, t := range targets {
		up := map[bool]float64{true: 1}[t.reached()] // outside the lock: it may take one of its own
		ch <- prometheus.MustNewConstMetric(descReached, prometheus.GaugeValue, up, name)
	}
	for _, s := range live {
		s.collect(ch, s.now)
	}
}

// valid makes a label value that cannot fail a scrape.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
