package gpu

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

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

// A sample is one value on the page. Samples of a device share their labels; client_golang's metrics copy them.
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
