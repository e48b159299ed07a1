package gpu

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
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
	descUp         = sourceDesc("up", "1 when the latest reading of the source gave figures.")
	descDuration   = sourceDesc("scrape_duration_seconds", "Time that the latest reading of the source took.")
	descErrors     = sourceDesc("scrape_errors_total", "Readings of the source that gave no figures.")
	descDuplicates = sourceDesc("duplicate_devices", "GPUs and MIG instances of the source that are left out, since another source of the target shows them.")
	descAge        = sourceDesc("age_seconds", "Time since the reading that the source's figures are from.")

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
	watches []*Watch // that run, in the order in which their devices are preferred
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

// show has a watch on the page until its hide.
func (c *Collector) show(w *Watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := w.origin()
	c.idle = slices.DeleteFunc(c.idle, func(other origin) bool { return other == o })
	c.watches = append(c.watches, w)
	slices.SortStableFunc(c.watches, func(a, b *Watch) int {
		return cmp.Or(strings.Compare(a.o.Kind, b.o.Kind), strings.Compare(a.o.Address, b.o.Address))
	})
}

func (c *Collector) hide(w *Watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
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
	c.mu.Lock()
	defer c.mu.Unlock()
	type place struct {
		target string
		device identity
	}
	shown := map[place]origin{}
	sources := map[origin]bool{}
	for _, w := range c.watches {
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
		if dropped > 0 && w.dropped == 0 {
			w.o.Log.Warn("GPUs are left out: another source of the target shows them", "devices", dropped)
		}
		w.dropped = dropped
		if !sources[o] {
			sources[o] = true
			s.collect(ch, o, dropped, c.errors[o])
		}
	}
}

func (s *state) collect(ch chan<- prometheus.Metric, o origin, dropped int, errs int64) {
	show := func(d *prometheus.Desc, kind prometheus.ValueType, v float64) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, o.target, o.kind, o.address)
	}
	up := 0.0
	if s.read && s.err == nil {
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

// show prepares what the page says of the devices.
func show(target string, devices []Device) []figure {
	figures := make([]figure, len(devices))
	for i := range devices {
		d := &devices[i]
		figures[i] = figure{d.identity(), d.metrics(target)}
	}
	return figures
}

// metrics share their labels, in the order of their names, which is that of the page: "reason" goes between two of them.
func (d *Device) metrics(target string) []prometheus.Metric {
	pairs := []*dto.LabelPair{
		pair("gpu", d.Index),
		pair("hostname", d.Hostname),
		pair("mig_instance", d.Instance),
		pair("mig_profile", d.Profile),
		pair("model_name", d.Model),
		pair("target", target),
		pair("uuid", d.UUID),
	}
	const model = 5 // how many are before "reason"
	list := make([]prometheus.Metric, 0, len(d.Values)+len(throttleReasons))
	add := func(f *Field, v float64, reason string) {
		labels := pairs
		if reason != "" {
			labels = slices.Concat(pairs[:model], []*dto.LabelPair{pair("reason", reason)}, pairs[model:])
		}
		list = append(list, &sample{fieldDescs[f], labels, f.Kind == Counter, v})
	}
	for f, v := range d.Values {
		if f.Kind != Bits {
			add(f, v, f.Reason)
			continue
		}
		for _, r := range throttleReasons {
			bit := 0.0
			if uint64(v)&r.bit != 0 {
				bit = 1
			}
			add(f, bit, r.name)
		}
	}
	return list
}

func pair(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }

// A sample is a figure on the page. It shares its labels, which those of client_golang do not.
type sample struct {
	desc    *prometheus.Desc
	labels  []*dto.LabelPair
	counter bool
	value   float64
}

// Desc implements prometheus.Metric.
func (s *sample) Desc() *prometheus.Desc { return s.desc }

// Write implements prometheus.Metric.
func (s *sample) Write(m *dto.Metric) error {
	m.Label = s.labels
	if s.counter {
		m.Counter = &dto.Counter{Value: &s.value}
	} else {
		m.Gauge = &dto.Gauge{Value: &s.value}
	}
	return nil
}
