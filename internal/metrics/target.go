package metrics

import (
	"time"

	"replayd/internal/bounded"
)

// Bounds of the label that comes from a server. A workload has all its series for each model, and so there are few.
const (
	maxLabelBytes = 256
	maxModels     = 7 // of a target, beside "" before the first answer and other
	forgetModel   = 24 * time.Hour
)

// A Target holds the series of a target and the model name for workloads that learn it.
type Target struct {
	m              *Meter
	name, api, url string
	now            func() TargetState

	// Guarded by the Meter's lock.
	label    string      // the model that the server lists, or other; "" before it has answered
	learners []*Workload // live workloads that learn the model
}

// A TargetState is what a scrape says of a target.
type TargetState struct {
	Reached      bool
	Pods         int   // that requests go to
	LookupErrors int64 // look-ups of its pods that have failed
	TLSErrors    int64 // reads of its certificates that have failed
}

// Target returns a target. Its series are on the page while a workload uses it. A later target with the same name
// replaces it. url is the address for a person: it holds no secrets. now is called at each scrape, without a lock held.
func (m *Meter) Target(name, api, url string, now func() TargetState) *Target {
	return &Target{m: m, name: valid(name), api: valid(api), url: valid(url), now: now}
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
	t.label = t.m.addModel(t.name, valid(model))
	for _, w := range t.learners {
		t.m.rename(w, t.label)
	}
	t.m.forgetModels(t)
}

// addModel returns the label value of a model. The lock is held.
func (m *Meter) addModel(target, model string) string {
	models := m.models[target]
	if models == nil {
		models = bounded.NewSet[struct{}](maxModels, forgetModel)
		m.models[target] = models
	}
	now := time.Now()
	for l, s := range m.series {
		if l.Target == target && models.Has(l.Model) && s.busy() { // a server says its model only now and then
			models.See(l.Model, now)
		}
	}
	if models.See(model, now) == nil {
		m.Overflow.Add(bounded.Model, 1)
		return bounded.Other
	}
	return model
}
