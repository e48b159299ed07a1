package gpu

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// show returns the exported metrics of the devices.
func show(target string, devices []Device) []figure {
	figures := make([]figure, len(devices))
	for i := range devices {
		d := &devices[i]
		figures[i] = figure{d.identity(), d.metrics(target)}
	}
	return figures
}

// metrics returns the metrics of a device. They share one slice of labels, sorted by name; "reason" is inserted in the
// middle.
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
	const model = 5 // number of labels before "reason"
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

// A sample is one series on the page. The samples of a device share one label slice; client_golang's metrics copy it.
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
