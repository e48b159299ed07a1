package gpu

import (
	"slices"

	dto "github.com/prometheus/client_model/go"

	"replayd/internal/scrape"
)

// show returns the series of the devices.
func show(target string, devices []Device) []figure {
	figures := make([]figure, len(devices))
	for i := range devices {
		d := &devices[i]
		figures[i] = figure{d.identity(), d.series(target)}
	}
	return figures
}

// series returns the series of a device. They share one slice of labels, sorted by name; "reason" is inserted in the
// middle.
func (d *Device) series(target string) []*scrape.Series {
	pairs := []*dto.LabelPair{
		scrape.Pair("gpu", string(d.Index)),
		scrape.Pair("hostname", string(d.Hostname)),
		scrape.Pair("mig_instance", string(d.Instance)),
		scrape.Pair("mig_profile", string(d.Profile)),
		scrape.Pair("model_name", string(d.Model)),
		scrape.Pair("target", target),
		scrape.Pair("uuid", string(d.UUID)),
	}
	const model = 5 // number of labels before "reason"
	list := make([]*scrape.Series, 0, len(d.Values)+len(throttleReasons))
	add := func(f *Field, v float64, reason string) {
		labels := pairs
		if reason != "" {
			labels = slices.Concat(pairs[:model], []*dto.LabelPair{scrape.Pair("reason", reason)}, pairs[model:])
		}
		list = append(list, &scrape.Series{Family: f.family, Labels: labels, Part: d.Instance != "", Value: v})
	}
	for f, v := range d.Values {
		if f.Kind != Bits {
			add(f, v, f.Reason)
			continue
		}
		for i, reason := range throttleReasons {
			add(f, float64(uint64(v)>>i&1), reason)
		}
	}
	return list
}
