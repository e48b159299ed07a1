package scrape

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/bounded"
)

// keptIdle is the maximum number of engines kept after their scraping ends. The counters of a kept engine continue when
// it returns.
const keptIdle = 500

// A Collector exports the metrics of all targets' engines, or of all their routers. They are prepared when an engine is
// scraped, so a scrape of replayd does not wait for an engine.
type Collector struct {
	Overflow *bounded.Overflow // label values without a place; set before the first target
	role     *Role

	mu       sync.Mutex
	engines  map[address]*engine
	idle     []address               // engines that are not scraped, longest idle first
	replicas map[string]*labelValues // addresses on the page, by target
}

// NewCollector registers the series of a role with reg and panics if they are already registered.
func NewCollector(reg prometheus.Registerer, role *Role) *Collector {
	c := &Collector{role: role, engines: map[address]*engine{}, replicas: map[string]*labelValues{}}
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
		e = &engine{role: c.role, overflow: c.Overflow}
		c.engines[a] = e
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Equal(e.rows, rows) { // other rows read other counters: lower ones are no sign of a restart
		e.rows, e.history = rows, history{}
	}
	if e.users++; e.users == 1 {
		c.idle = slices.DeleteFunc(c.idle, func(other address) bool { return other == a })
		if time.Since(e.left) > forget {
			e.state = state{}
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
	r := c.role
	for _, d := range []*prometheus.Desc{r.up, r.info.desc, r.duration, r.samples, r.errors, r.bad, r.age, r.restarts, r.shared} {
		ch <- d
	}
	for _, q := range r.quantities {
		ch <- q.desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	for a, e := range c.shown() {
		e.collect(ch, a)
	}
}

// Values returns the latest reading of each engine on /metrics.
func (c *Collector) Values() (all []Values) {
	for a, e := range c.shown() {
		s := e.now()
		all = append(all, Values{a.target, s.up(), s.at, s.series})
	}
	return all
}

// shown returns the engines that are exported. It leaves out engines whose address has no place.
func (c *Collector) shown() map[address]*engine {
	c.mu.Lock()
	shown := map[address]*engine{}
	now, out := time.Now(), 0
	for a, e := range c.engines {
		if e.users == 0 {
			continue
		}
		of := c.replicas[a.target]
		if of == nil {
			of = bounded.NewSet[struct{}](maxAddresses, forgetAddress)
			c.replicas[a.target] = of
		}
		if of.See(a.replica, now) == nil {
			out++
			continue
		}
		shown[a] = e
	}
	c.mu.Unlock()
	c.Overflow.Add(bounded.Address, out)
	return shown
}

func (e *engine) collect(ch chan<- prometheus.Metric, a address) {
	s, r := e.now(), e.role
	gauge := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, a.target, a.replica)
	}
	gauge(r.up, map[bool]float64{true: 1}[s.up()])
	gauge(r.duration, s.duration.Seconds())
	gauge(r.samples, float64(s.samples))
	gauge(r.shared, map[bool]float64{true: 1}[s.shared])
	if !s.at.IsZero() {
		gauge(r.age, time.Since(s.at).Seconds())
	}
	for _, m := range s.series {
		ch <- m
	}
	ch <- prometheus.MustNewConstMetric(r.bad, prometheus.CounterValue, float64(e.bad.Load()), a.target, a.replica)
	ch <- prometheus.MustNewConstMetric(r.restarts, prometheus.CounterValue, float64(e.restarts.Load()), a.target, a.replica)
	for i, reason := range reasons {
		ch <- prometheus.MustNewConstMetric(r.errors, prometheus.CounterValue, float64(e.failures[i].Load()), a.target, a.replica, string(reason))
	}
}
