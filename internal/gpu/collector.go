package gpu

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	namespace  = "replayd_gpu_"
	keptErrors = 500 // removed sources whose error counts are kept, so that the counter of a returning source continues
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
	descAge        = sourceDesc("age_seconds", "Time since the latest successful reading of the source.")

	fieldDescs = func() map[*Field]*prometheus.Desc {
		descs := map[*Field]*prometheus.Desc{}
		for _, f := range fields {
			names := deviceLabels
			if f.Kind == Bits || f.Reason != "" {
				names = slices.Concat(deviceLabels, []string{"reason"})
			}
			descs[f] = prometheus.NewDesc(namespace+f.Name, f.Help, names, nil)
		}
		return descs
	}()
)

func sourceDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(namespace+name, help, sourceLabels, nil)
}

// A Collector exports the metrics of all targets' GPUs. They are prepared when a source is read, so a scrape of replayd
// does not wait for a source.
type Collector struct {
	mu      sync.Mutex
	watches []*Watch // exported watches, by preference for duplicate devices
	errors  map[origin]int64
	idle    []origin // origins with errors and without a watch, longest idle first
}

// An origin identifies one source of a target. Two watches share an origin only while one replaces the other, or if
// they select different devices.
type origin struct{ target, kind, address string }

func (w *Watch) origin() origin { return origin{w.o.Target, w.o.Kind, w.o.Address} }

// NewCollector registers the GPUs' series with reg and panics if they are already registered.
func NewCollector(reg prometheus.Registerer) *Collector {
	c := &Collector{errors: map[origin]int64{}}
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
	if len(c.idle) > keptErrors {
		delete(c.errors, c.idle[0])
		c.idle = c.idle[1:]
	}
}

// failed counts a failed reading of a watch.
func (c *Collector) failed(w *Watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errors[w.origin()]++
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descUp, descDuration, descErrors, descDuplicates, descAge} {
		ch <- d
	}
	for _, f := range fields {
		ch <- fieldDescs[f]
	}
}

// Collect implements prometheus.Collector. A device that several sources of a target see is exported from one source
// only: duplicate series would fail the whole scrape, and sums would count the device twice. The most detailed source
// wins; its kind comes first in alphabetical order: dcgm_exporter, libdcgm, nvidia_smi.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	type place struct {
		target string
		device identity
	}
	shown := map[place]origin{}
	sources := map[origin]bool{}
	watches, errs := c.current()
	for i, w := range watches {
		o, s := w.origin(), w.now()
		dropped := 0
		for _, f := range s.figures {
			p := place{o.target, f.device}
			if first, twice := shown[p]; twice {
				if first != o {
					dropped++
				}
				continue
			}
			shown[p] = o
			for _, m := range f.metrics {
				ch <- m
			}
		}
		if before := w.dropped.Swap(int64(dropped)); dropped > 0 && before == 0 {
			w.o.Log.Warn("GPUs are ignored: another source of this target already exports them", "devices", dropped)
		}
		if !sources[o] {
			sources[o] = true
			s.collect(ch, o, dropped, errs[i])
		}
	}
}

// current returns the watches and the number of errors of each. Collect uses them without holding the lock, so a slow
// client or log does not block a watch.
func (c *Collector) current() ([]*Watch, []int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	errs := make([]int64, len(c.watches))
	for i, w := range c.watches {
		errs[i] = c.errors[w.origin()]
	}
	return slices.Clone(c.watches), errs
}

func (s *state) collect(ch chan<- prometheus.Metric, o origin, dropped int, errs int64) {
	show := func(d *prometheus.Desc, kind prometheus.ValueType, v float64) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, o.target, o.kind, o.address)
	}
	up := 0.0
	if s.missed == 0 && !s.at.IsZero() {
		up = 1
	}
	show(descUp, prometheus.GaugeValue, up)
	show(descDuration, prometheus.GaugeValue, s.duration.Seconds())
	show(descErrors, prometheus.CounterValue, float64(errs))
	show(descDuplicates, prometheus.GaugeValue, float64(dropped))
	if !s.at.IsZero() {
		show(descAge, prometheus.GaugeValue, time.Since(s.at).Seconds())
	}
}
