package scrape

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// keptIdle is the maximum number of engines kept after their scraping ends. The counters of a kept engine continue when
// it returns.
const keptIdle = 500

var (
	perReplica = []string{"target", "replica"}

	descUp       = prometheus.NewDesc(namespace+"up", "1 when the latest scrape of the engine's page gave a whole page.", perReplica, nil)
	descInfo     = prometheus.NewDesc(namespace+"info", "The engine by its page, and the model that the page names.", []string{"target", "replica", "engine", "model_name"}, nil)
	descDuration = prometheus.NewDesc(namespace+"scrape_duration_seconds", "Time that the latest scrape of the engine's page took.", perReplica, nil)
	descSamples  = prometheus.NewDesc(namespace+"scrape_samples", "Samples on the page at the latest scrape, known ones and others.", perReplica, nil)
	descErrors   = prometheus.NewDesc(namespace+"scrape_errors_total", "Scrapes of the engine's page that gave no whole page, by the reason.", []string{"target", "replica", "reason"}, nil)
	descAge      = prometheus.NewDesc(namespace+"age_seconds", "Time since the latest successful scrape of the engine.", perReplica, nil)
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

// A Collector exports the metrics of all targets' engines. They are prepared when an engine is scraped, so a scrape of
// replayd does not wait for an engine.
type Collector struct {
	mu      sync.Mutex
	engines map[address]*engine
	idle    []address // engines that are not scraped, longest idle first
}

// An address identifies one engine of a target.
type address struct{ target, replica string }

// NewCollector registers the engines' series with reg and panics if they are already registered.
func NewCollector(reg prometheus.Registerer) *Collector {
	c := &Collector{engines: map[address]*engine{}}
	reg.MustRegister(c)
	return c
}

// use returns the engine at address a and exports it until release. During a reload the old and the new target share
// the engine, so its figures, counters and restart history continue. If the engine has been idle for longer than
// forget, its figures are cleared.
func (c *Collector) use(a address, rows []Row, forget time.Duration) *engine {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.engines[a]
	if e == nil {
		e = &engine{}
		c.engines[a] = e
	}
	if !slices.Equal(e.rows, rows) { // other rows read other counters: do not compare them with the earlier ones
		e.rows = rows
		e.forget()
	}
	if e.users++; e.users == 1 {
		c.idle = slices.DeleteFunc(c.idle, func(other address) bool { return other == a })
		if time.Since(e.left) > forget {
			e.put(state{})
		}
	}
	return e
}

func (c *Collector) release(a address) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.engines[a]
	if e.users--; e.users > 0 {
		return
	}
	e.left = time.Now()
	c.idle = append(c.idle, a)
	if len(c.idle) > keptIdle {
		delete(c.engines, c.idle[0])
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

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	shown := map[address]*engine{}
	for a, e := range c.engines {
		if e.users > 0 {
			shown[a] = e
		}
	}
	c.mu.Unlock()
	for a, e := range shown {
		e.collect(ch, a)
	}
}

func (e *engine) collect(ch chan<- prometheus.Metric, a address) {
	s := e.now()
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
	ch <- prometheus.MustNewConstMetric(descRestarts, prometheus.CounterValue, float64(e.restarts.Load()), a.target, a.replica)
	for i, r := range reasons {
		ch <- prometheus.MustNewConstMetric(descErrors, prometheus.CounterValue, float64(e.failures[i].Load()), a.target, a.replica, string(r))
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// metrics returns the exported metrics of a reading.
func (a address) metrics(r *Reading) []prometheus.Metric {
	list := make([]prometheus.Metric, 0, len(r.Figures)+1)
	list = append(list, prometheus.MustNewConstMetric(descInfo, prometheus.GaugeValue, 1, a.target, a.replica, r.Engine, r.Model))
	for _, f := range r.Figures {
		d := descs[f.Quantity]
		switch f.Quantity.Kind {
		case Gauge:
			list = append(list, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, f.Value, a.target, a.replica, f.Rank))
		case Counter:
			list = append(list, prometheus.MustNewConstMetric(d, prometheus.CounterValue, f.Value, a.target, a.replica, f.Rank))
		case Histogram:
			list = append(list, &histogramMetric{d, prometheus.MakeLabelPairs(d, []string{a.target, a.replica, f.Rank}), f.Buckets.proto()})
		}
	}
	return list
}
