package metrics

import "github.com/prometheus/client_golang/prometheus"

// Bounds on the one label that comes from a server.
const (
	maxLabelBytes = 256
	maxModels     = 8       // values of the label model that a target's workloads may have, "" before the first aside
	otherModel    = "other" // what all names behind the first seven are counted under
)

// A Target is what the page says of the place that requests go to, and where workloads learn the label model from.
type Target struct {
	m         *Meter
	name, api string
	reached   func() bool

	// Guarded by the Meter's lock.
	model    string      // what its server lists; "" before it has answered
	label    string      // the same as workloads have it: one of at most maxModels
	labels   []string    // the names that are labels of their own
	learners []*Workload // live ones
}

// Target prepares the series of a target; they are on the page while a workload has it. A later one of the same name takes
// its place. Reached is asked at each scrape, without a lock held.
func (m *Meter) Target(name, api string, reached func() bool) *Target {
	return &Target{m: m, name: valid(name), api: valid(api), reached: reached}
}

// Serves says which model the target's server lists now, cut to 256 bytes. Workloads that learn it count in series of that
// model from now on. What they counted before stays where it is, and what is on its way ends there; series in which nothing
// was counted go, so that no sum and no join sees two of one workload.
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

// collectInfo needs the Meter's lock.
func (t *Target) collectInfo(ch chan<- prometheus.Metric) {
	if t.model != "" {
		ch <- prometheus.MustNewConstMetric(descTarget, prometheus.GaugeValue, 1, t.name, t.model, t.api)
	}
}
