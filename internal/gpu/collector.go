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
	keptErrors = 500 // sources that are no longer read and whose errors are remembered, so that one that returns continues
)

// The labels of a source and of a device. A whole GPU has no MIG labels: their values are empty.
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

// A Collector shows what all targets' GPUs say. What it shows was prepared when it was read, so that a page waits for no
// source.
type Collector struct {
	mu      sync.Mutex
	watches []*Watch // that are shown, in the order in which their devices are preferred
	errors  map[origin]int64
	idle    []origin // with errors and without a watch, the one longest without first
}

// An origin is one source of a target. Two watches have the same only while one replaces the other, or where they
// select different devices.
type origin struct{ target, kind, address string }

func (w *Watch) origin() origin { return origin{w.o.Target, w.o.Kind, w.o.Address} }

// NewCollector registers the GPUs' series with reg and panics when they are there already.
func NewCollector(reg prometheus.Registerer) *Collector {
	c := &Collector{errors: map[origin]int64{}}
	reg.MustRegister(c)
	return c
}

// show has a watch on the page until its hide. One that takes the place of another begins with what that knows, so that
// no figure is missing until its first reading.
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
			s.read, s.err = false, nil // its failures are logged anew
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

// failed counts a reading of a watch that is shown.
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

// Collect implements prometheus.Collector. A device that two sources of a target see is shown by one of them: the same
// series twice would spoil the whole page, and sums would count the device twice. It is the one that knows more, which
// the order of the kinds' names happens to say: dcgm_exporter, libdcgm, nvidia_smi.
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

// current gives the watches and how many errors each had. A page is made of them without the lock, so that neither who
// reads it slowly nor the log holds up a watch.
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
