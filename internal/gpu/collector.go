package gpu

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/bounded"
	"replayd/internal/scrape"
)

const (
	namespace = "replayd_gpu_"
	keptIdle  = 500 // removed sources of which something is kept, so that the counter of a returning source continues
)

// The labels of a source and of a device. For a whole GPU the MIG labels are empty.
var (
	sourceLabels = []string{"target", "source", "address"}
	deviceLabels = []string{"target", "gpu", "uuid", "model_name", "hostname", "mig_profile", "mig_instance"}
)

var (
	descUp         = sourceDesc("up", "1 if the latest reading of the source succeeded.")
	descDuration   = sourceDesc("scrape_duration_seconds", "Time that the latest reading of the source took.")
	descErrors     = sourceDesc("scrape_errors_total", "Readings of the source that failed.")
	descDuplicates = sourceDesc("duplicate_devices", "GPUs and MIG instances of the source that are left out, since another source of the target shows them.")
	descBad        = sourceDesc("bad_samples_total", "Samples of the source that could not be read or are impossible, and were left out.")
	descAge        = sourceDesc("age_seconds", "Time since the source sampled the newest figure, or since the latest successful reading of a source that does not say.")
)

func sourceDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(namespace+name, help, sourceLabels, nil)
}

// A Collector exports the metrics of all targets' GPUs. They are prepared when a source is read, so a scrape of replayd
// does not wait for a source.
type Collector struct {
	Overflow *bounded.Overflow // devices without a place; set before the first watch

	mu      sync.Mutex
	watches []*Watch // exported watches, by preference for duplicate devices
	origins map[origin]*kept
	idle    []origin // origins without a watch, longest idle first
}

// kept is what a source that returns goes on with.
type kept struct {
	errors  int64
	bad     int64
	devices *bounded.Set[struct{}] // on the page
}

// Bounds of the devices of one source over the life of the process. Real ones change with the nodes of a cluster.
const (
	maxDevices   = maxSelected
	forgetDevice = 24 * time.Hour
)

// of returns what is kept of an origin. The lock is held.
func (c *Collector) of(o origin) *kept {
	k := c.origins[o]
	if k == nil {
		k = &kept{devices: bounded.NewSet[struct{}](maxDevices, forgetDevice)}
		c.origins[o] = k
	}
	return k
}

// place returns the devices that have a place on the page. The others are left out: a sum over them would fall and jump with each that comes
// and goes.
func (c *Collector) place(w *Watch, devices []Device) []Device {
	c.mu.Lock()
	defer c.mu.Unlock()
	places, now := c.of(w.origin()).devices, time.Now()
	n := len(devices)
	devices = slices.DeleteFunc(devices, func(d Device) bool {
		name := d.Index + "\x00" + d.UUID + "\x00" + d.Model + "\x00" + d.Hostname + "\x00" + d.Profile + "\x00" + d.Instance
		return places.See(string(name), now) == nil
	})
	c.Overflow.Add(bounded.Device, n-len(devices))
	return devices
}

// An origin identifies one source of a target. Two watches share an origin only while one replaces the other, or if
// they select different devices.
type origin struct{ target, kind, address string }

func (w *Watch) origin() origin { return origin{w.o.Target, w.o.Kind, w.o.Address} }

// NewCollector registers the GPUs' series with reg and panics if they are already registered.
func NewCollector(reg prometheus.Registerer) *Collector {
	c := &Collector{origins: map[origin]*kept{}}
	reg.MustRegister(c)
	return c
}

// show exports a watch until hide. A watch that replaces another one starts with its figures, so that no series is
// missing until the first reading.
func (c *Collector) show(w *Watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.watches, w) {
		return
	}
	o := w.origin()
	for _, old := range c.watches {
		if old.origin() == o && reflect.DeepEqual(old.o.Select, w.o.Select) {
			s := old.now()
			s.read, s.err = false, nil // log the failures of the new watch again
			w.put(s)
			w.dropped.Store(old.dropped.Load())
		}
	}
	c.idle = slices.DeleteFunc(c.idle, func(other origin) bool { return other == o })
	c.watches = append(c.watches, w)
	slices.SortStableFunc(c.watches, func(a, b *Watch) int {
		return cmp.Or(strings.Compare(a.o.Kind, b.o.Kind), strings.Compare(a.o.Address, b.o.Address))
	})
}

func (c *Collector) hide(w *Watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.watches, w) {
		return
	}
	c.watches = slices.DeleteFunc(c.watches, func(other *Watch) bool { return other == w })
	o := w.origin()
	if slices.ContainsFunc(c.watches, func(other *Watch) bool { return other.origin() == o }) {
		return
	}
	c.idle = append(c.idle, o)
	if len(c.idle) > keptIdle {
		delete(c.origins, c.idle[0])
		c.idle = c.idle[1:]
	}
}

// count counts a reading of a watch.
func (c *Collector) count(w *Watch, s *state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.of(w.origin())
	if k.bad += int64(s.bad); s.err != nil {
		k.errors++
	}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descUp, descDuration, descErrors, descBad, descDuplicates, descAge} {
		ch <- d
	}
	for _, f := range fields {
		ch <- f.family.Desc()
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	for _, s := range c.shown() {
		for _, m := range s.series {
			ch <- m
		}
		if !s.again {
			s.collect(ch)
		}
	}
}

// Values returns the latest reading of each source on /metrics.
func (c *Collector) Values() (all []scrape.Values) {
	for _, s := range c.shown() {
		all = append(all, scrape.Values{Target: s.target, Up: s.up(), At: s.newest(), Series: s.series})
	}
	return all
}

// A shown has the exported series of a watch.
type shown struct {
	origin
	state
	watch   *Watch
	errors  int64
	leftOut int64 // bad samples so far
	series  []*scrape.Series
	dropped int  // devices that another source shows
	again   bool // a watch before it has the origin
}

// shown returns the exported series of each watch. A device that several sources of a target see is exported from one
// source only: duplicate series would fail the whole scrape, and sums would count the device twice. The most detailed
// source wins; its kind comes first in alphabetical order: dcgm_exporter, libdcgm, nvidia_smi.
func (c *Collector) shown() (all []shown) {
	type place struct {
		target string
		device identity
	}
	places := map[place]origin{}
	sources := map[origin]bool{}
	c.mu.Lock()
	for _, w := range c.watches {
		k := c.of(w.origin())
		all = append(all, shown{origin: w.origin(), state: w.now(), watch: w, errors: k.errors, leftOut: k.bad})
	}
	c.mu.Unlock() // a slow log does not block a watch
	for i := range all {
		s := &all[i]
		for _, f := range s.figures {
			p := place{s.target, f.device}
			if first, twice := places[p]; !twice {
				places[p] = s.origin
				s.series = append(s.series, f.series...)
			} else if first != s.origin {
				s.dropped++
			}
		}
		if before := s.watch.dropped.Swap(int64(s.dropped)); s.dropped > 0 && before == 0 {
			s.watch.o.Log.Warn("GPUs are ignored: another source of this target already exports them", "devices", s.dropped)
		}
		s.again, sources[s.origin] = sources[s.origin], true
	}
	return all
}

func (s *shown) collect(ch chan<- prometheus.Metric) {
	show := func(d *prometheus.Desc, kind prometheus.ValueType, v float64) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, s.target, s.kind, s.address)
	}
	show(descUp, prometheus.GaugeValue, map[bool]float64{true: 1}[s.up()])
	show(descDuration, prometheus.GaugeValue, s.duration.Seconds())
	show(descErrors, prometheus.CounterValue, float64(s.errors))
	show(descBad, prometheus.CounterValue, float64(s.leftOut))
	show(descDuplicates, prometheus.GaugeValue, float64(s.dropped))
	if !s.at.IsZero() {
		show(descAge, prometheus.GaugeValue, time.Since(s.newest()).Seconds())
	}
}
