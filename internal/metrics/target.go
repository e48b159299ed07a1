package metrics

import "github.com/prometheus/client_golang/prometheus"

// Bounds of the label that comes from a server.
const (
	maxLabelBytes = 256
	maxModels     = 8       // maximum number of values of the label model per target, without "" before the first answer
	otherModel    = "other" // label value of all models after the first seven
)

// A Target holds the series of a target and the model name for workloads that learn it.
type Target struct {
	m         *Meter
	name, api string
	reached   func() bool

	// Guarded by the Meter's lock.
	model    string      // the model that the server lists; "" before it has answered
	label    string      // the label value of model: one of at most maxModels
	labels   []string    // models that have their own label value
	learners []*Workload // live workloads that learn the model
}

// Target returns a target. Its series are on the page while a workload uses it. A later target with the same name
// replaces it. reached is called at each scrape, without a lock held.
func (m *Meter) Target(name, api string, reached func() bool) *Target {
	return &Target{m: m, name: valid(name), api: valid(api), reached: reached}
}

// Serves sets the model that the target's server lists, truncated to 256 bytes. Workloads that learn it count in the
// series of this model from then on. Earlier counts stay in their series, and requests that are waiting or in flight
// end there. Series without any counts are deleted, so that sums and joins see the workload once.
func (t *Target) Serves(model string) {
	if len(model) > maxLabelBytes {
		model = model[:maxLabelBytes]
	}
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	t.model = valid(model)
	t.label = t.labelOf(t.model)
	for _, w := range t.learners {
		t.m.rename(w, t.label)
	}
}

func (t *Target) labelOf(model string) string {
	for _, known := range t.labels {
		if known == model {
			return model
		}
	}
	if len(t.labels) == maxModels-1 {
		return otherModel
	}
	t.labels = append(t.labels, model)
	return model
}

// collectInfo exports target_info. Meter.mu is held.
func (t *Target) collectInfo(ch chan<- prometheus.Metric) {
	if t.model != "" {
		ch <- prometheus.MustNewConstMetric(descTarget, prometheus.GaugeValue, 1, t.name, t.model, t.api)
	}
}
