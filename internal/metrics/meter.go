package metrics

import (
	"slices"
	"strings"
	"sync"

	"replayd/internal/bounded"
	"replayd/internal/limits"
	"replayd/internal/measure"

	"github.com/prometheus/client_golang/prometheus"
)

// keptRemoved is the number of removed workloads whose counts are kept, so that the counters of a returning workload
// continue.
const keptRemoved = 100

// Labels identify a workload on /metrics.
type Labels struct {
	Workload string
	Target   string
	Model    string // as configured; empty if the target's model is used, see WorkloadOptions
}

// TraceInfo describes the trace of a workload on /metrics.
type TraceInfo struct {
	Path           string
	Format         string
	SHA256         string // hexadecimal; the page shows the first 12 digits
	Requests       int
	Sessions       int     // distinct names; 0: there are none, or that is not known
	BlockTokens    int     // 0 if the rows have no blocks
	PrefixHitRatio float64 // 0 to 1, by tokens; NaN if unknown
}

// A Shard is the index of this process among those that share a trace. The zero value has the whole trace.
type Shard struct{ Index, Of int }

// WorkloadOptions configures the series of a workload.
type WorkloadOptions struct {
	SLO        measure.SLO
	Objective  float64 // share of requests that should be good, greater than 0 and less than 1
	Sessions   measure.SessionSLO
	Shard      Shard
	Trace      TraceInfo
	Replicas   bool // the target's answers name the replica that answers
	Echo       bool // a header of the answers is sent back
	Cron       bool // loops begin by a cron expression
	FreeOutput bool // the server may stop before the trace's length (output: max, free); this is no mismatch
	Sheds      bool // a request without a free lane is dropped at once (overload: drop), and is then not eligible

	// Target has its own series while one of its workloads is on the page; nil: no target series. With Learn, the label
	// model is the model that the target served last, instead of Labels.Model.
	Target *Target
	Learn  bool
}

// A Meter holds the client-side series of all workloads. It is safe for concurrent use.
type Meter struct {
	RecordErrors prometheus.Counter // lost records, for NewSink
	Overflow     *bounded.Overflow  // label values without a place, also of the other rooms' series

	hists [numHists]*prometheus.HistogramVec

	mu      sync.Mutex
	series  map[Labels]*series                // live series and kept series of removed workloads
	removed []*series                         // series without users, longest removed first
	targets map[string]*Target                // targets of live workloads by name; the latest if two share a name
	models  map[string]*bounded.Set[struct{}] // values of the label model by the target's name, for the life of the process
}

// NewMeter registers the client-side series with reg and panics if they are already registered.
func NewMeter(reg prometheus.Registerer) *Meter {
	m := &Meter{
		RecordErrors: prometheus.NewCounter(prometheus.CounterOpts(opts("record_errors_total",
			"Records of finished requests that could not be written."))),
		Overflow: bounded.NewOverflow(reg),
		series:   map[Labels]*series{},
		targets:  map[string]*Target{},
		models:   map[string]*bounded.Set[struct{}]{},
	}
	for i, o := range histOpts {
		m.hists[i] = prometheus.NewHistogramVec(o, threeLabels)
	}
	reg.MustRegister(m, m.RecordErrors)
	return m
}

// Workload adds the series of a workload to the page: from 0, or continued from a removed workload with the same
// labels. Two workloads with equal labels, for instance a draining one and its successor, share the series. The gauges
// are then those of the later workload, but the guard's are open while either guard is open.
func (m *Meter) Workload(l Labels, o WorkloadOptions) *Workload {
	l = Labels{Workload: valid(l.Workload), Target: valid(l.Target), Model: valid(l.Model)}
	m.mu.Lock()
	defer m.mu.Unlock()
	w := &Workload{options: o, overflow: m.Overflow}
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

// Unseen returns a workload that is on no page, for requests that are not counted.
func Unseen() *Workload {
	return NewMeter(prometheus.NewRegistry()).Workload(Labels{}, WorkloadOptions{})
}

// enter makes the workload count in the series of l. The lock is held.
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

// use adds a user to a series. The lock is held.
func (m *Meter) use(s *series) {
	if s.users == 0 {
		m.removed = slices.DeleteFunc(m.removed, func(r *series) bool { return r == s })
	}
	s.users++
}

// Remove takes a workload off the page. It may have no waiting requests and none in flight. Its counts are kept until
// 100 other workloads have been removed after it. Another call for the same Workload has no effect.
func (m *Meter) Remove(w *Workload) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.removed {
		return
	}
	w.removed = true
	for limit := range limits.NumLimits {
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

// drop removes a user from a series. A series without users is kept until keptRemoved others follow. The lock is held.
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

// forget deletes a series without users. The lock is held.
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

// Collect implements prometheus.Collector. All counts of a workload are read under one lock, so that expected =
// finished + dropped (without filtered) + in flight + waiting holds at every scrape.
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
		if s.labels.Model != goneModel {
			live = append(live, shown{s, s.current > 0})
		}
		if t := m.targets[s.labels.Target]; t != nil {
			targets[s.labels.Target] = t
		}
	}
	for _, t := range targets {
		ch <- prometheus.MustNewConstMetric(descTarget, prometheus.GaugeValue, 1, t.name, t.label, t.api, t.url)
	}
	m.mu.Unlock()

	for name, t := range targets {
		now := t.now() // called without the lock, because it may lock too
		up := map[bool]float64{true: 1}[now.Reached]
		ch <- prometheus.MustNewConstMetric(descReached, prometheus.GaugeValue, up, name)
		ch <- prometheus.MustNewConstMetric(descPods, prometheus.GaugeValue, float64(now.Pods), name)
		ch <- prometheus.MustNewConstMetric(descLookupErrors, prometheus.CounterValue, float64(now.LookupErrors), name)
		ch <- prometheus.MustNewConstMetric(descTLSErrors, prometheus.CounterValue, float64(now.TLSErrors), name)
	}
	for _, s := range live {
		s.collect(ch, s.now)
	}
}

// valid returns a valid label value, since an invalid one would fail the scrape.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
