package scrape

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/histogram"
)

// keptTallies is how many addresses that are no longer scraped keep what was counted of them, so that one that returns continues.
const keptTallies = 500

var (
	perReplica = []string{"target", "replica"}

	descUp       = prometheus.NewDesc(namespace+"up", "1 when the latest scrape of the engine's page gave a whole page.", perReplica, nil)
	descInfo     = prometheus.NewDesc(namespace+"info", "The engine by its page, and the model that the page names.", []string{"target", "replica", "engine", "model_name"}, nil)
	descDuration = prometheus.NewDesc(namespace+"scrape_duration_seconds", "Time that the latest scrape of the engine's page took.", perReplica, nil)
	descSamples  = prometheus.NewDesc(namespace+"scrape_samples", "Samples on the page at the latest scrape, known ones and others.", perReplica, nil)
	descErrors   = prometheus.NewDesc(namespace+"scrape_errors_total", "Scrapes of the engine's page that gave no whole page, by the reason.", []string{"target", "replica", "reason"}, nil)
	descAge      = prometheus.NewDesc(namespace+"age_seconds", "Time since the scrape that the engine's figures are from.", perReplica, nil)
	descRestarts = prometheus.NewDesc(namespace+"restarts_total", "Times that another process answered than before: counters fell, or the page says so.", perReplica, nil)
	descShared   = prometheus.NewDesc(namespace+"address_shared", "1 while several processes answer at this address in turn: the counters then are of now one and now another.", perReplica, nil)

	descs = func() map[*Quantity]*prometheus.Desc {
		m := map[*Quantity]*prometheus.Desc{}
		for _, q := range quantities {
			m[q] = prometheus.NewDesc(q.Series(), q.Help, []string{"target", "replica", "rank"}, nil)
		}
		return m
	}()
)

// A Collector shows what all targets' engines say. What it shows was prepared when it was scraped, so that a page of
// replayd's own waits for no engine.
type Collector struct {
	mu      sync.Mutex
	targets []*Target // that run, the latest last
	tallies map[address]*tally
	idle    []address // whose tally nobody uses, the one longest without a user first
}

// An address is one engine of a target.
type address struct{ target, replica string }

// A tally is what replayd itself counts of an engine. It goes on when the address is scraped by another Target.
type tally struct {
	users int // guarded by the Collector's lock

	restarts atomic.Int64
	failures [len(reasons)]atomic.Int64
}

// NewCollector registers the engines' series with reg and panics when they are there already.
func NewCollector(reg prometheus.Registerer) *Collector {
	c := &Collector{tallies: map[address]*tally{}}
	reg.MustRegister(c)
	return c
}

// show has a target on the page until its hide.
func (c *Collector) show(t *Target) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.targets = append(c.targets, t)
}

func (c *Collector) hide(t *Target) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.targets = slices.DeleteFunc(c.targets, func(other *Target) bool { return other == t })
}

// use gives the tally of an address, until its release.
func (c *Collector) use(a address) *tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tallies[a]
	if t == nil {
		t = &tally{}
		c.tallies[a] = t
	}
	if t.users++; t.users == 1 {
		c.idle = slices.DeleteFunc(c.idle, func(other address) bool { return other == a })
	}
	return t
}

func (c *Collector) release(a address) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tallies[a]
	if t.users--; t.users > 0 {
		return
	}
	c.idle = append(c.idle, a)
	if len(c.idle) > keptTallies {
		delete(c.tallies, c.idle[0])
		c.idle = c.idle[1:]
	}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descUp, descInfo, descDuration, descSamples, descErrors, descAge, descRestarts, descShared} {
		ch <- d
	}
	for _, q := range quantities {
		ch <- descs[q]
	}
}

// Collect implements prometheus.Collector. While a target is replaced by one of the same name, an engine of both is
// shown as the later one sees it, once that has looked.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	targets := slices.Clone(c.targets)
	c.mu.Unlock()
	shown := map[address]state{}
	tallies := map[address]*tally{}
	for _, t := range targets {
		for _, e := range t.each() {
			a, now := address{t.o.Target, e.replica}, e.now()
			if _, known := shown[a]; !known || now.scraped {
				shown[a], tallies[a] = now, e.tally
			}
		}
	}
	for a, s := range shown {
		s.collect(ch, a)
		tallies[a].collect(ch, a)
	}
}

func (s *state) collect(ch chan<- prometheus.Metric, a address) {
	gauge := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, a.target, a.replica)
	}
	gauge(descUp, truth(s.scraped && s.err == nil))
	gauge(descDuration, s.duration.Seconds())
	gauge(descSamples, float64(s.samples))
	gauge(descShared, truth(s.shared))
	if !s.at.IsZero() {
		gauge(descAge, time.Since(s.at).Seconds())
	}
	for _, m := range s.metrics {
		ch <- m
	}
}

func (t *tally) collect(ch chan<- prometheus.Metric, a address) {
	ch <- prometheus.MustNewConstMetric(descRestarts, prometheus.CounterValue, float64(t.restarts.Load()), a.target, a.replica)
	for i, r := range reasons {
		ch <- prometheus.MustNewConstMetric(descErrors, prometheus.CounterValue, float64(t.failures[i].Load()), a.target, a.replica, string(r))
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// metrics prepares what a page shows of a reading.
func (e *endpoint) metrics(r Reading) []prometheus.Metric {
	target := e.target.o.Target
	list := make([]prometheus.Metric, 0, len(r.Figures)+1)
	list = append(list, prometheus.MustNewConstMetric(descInfo, prometheus.GaugeValue, 1, target, e.replica, r.Engine, r.Model))
	for _, f := range r.Figures {
		d := descs[f.Quantity]
		switch f.Quantity.Kind {
		case Gauge:
			list = append(list, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, f.Value, target, e.replica, f.Rank))
		case Counter:
			list = append(list, prometheus.MustNewConstMetric(d, prometheus.CounterValue, f.Value, target, e.replica, f.Rank))
		case Histogram:
			list = append(list, &passed{d, prometheus.MakeLabelPairs(d, []string{target, e.replica, f.Rank}), f.Buckets.proto()})
		}
	}
	return list
}

// A passed histogram has the engine's own buckets, classic, native or both, which no metric of client_golang can have.
type passed struct {
	desc      *prometheus.Desc
	labels    []*dto.LabelPair
	histogram *dto.Histogram
}

// Desc implements prometheus.Metric.
func (p *passed) Desc() *prometheus.Desc { return p.desc }

// Write implements prometheus.Metric.
func (p *passed) Write(m *dto.Metric) error {
	m.Label, m.Histogram = p.labels, p.histogram
	return nil
}

func (b *Buckets) proto() *dto.Histogram {
	h := &dto.Histogram{SampleCount: new(b.Count), SampleSum: new(b.Sum)}
	for i, upper := range b.Upper {
		h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: new(upper), CumulativeCount: new(b.Cumulative[i])})
	}
	if n := b.Native; n != nil {
		h.Schema, h.ZeroThreshold, h.ZeroCount = new(n.Schema), new(n.ZeroThreshold), new(uint64(n.ZeroCount))
		h.PositiveSpan, h.PositiveDelta = spans(n.PositiveSpans), deltas(n.PositiveBuckets)
		h.NegativeSpan, h.NegativeDelta = spans(n.NegativeSpans), deltas(n.NegativeBuckets)
	}
	return h
}

func spans(list []histogram.Span) []*dto.BucketSpan {
	out := make([]*dto.BucketSpan, len(list))
	for i, s := range list {
		out[i] = &dto.BucketSpan{Offset: new(s.Offset), Length: new(s.Length)}
	}
	return out
}

// deltas are counts as the protobuf format has them: each as its difference from the one before.
func deltas(counts []float64) []int64 {
	out := make([]int64, len(counts))
	before := int64(0)
	for i, c := range counts {
		out[i] = int64(c) - before
		before = int64(c)
	}
	return out
}
