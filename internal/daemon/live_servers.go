package daemon

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"replayd/internal/live"
)

// hitReadings is how many readings the prefix hits of the live page span: a minute, at one every 5 s.
const hitReadings = 12

// A prefixReading is what the prefix caches of a target's engines have counted, in tokens.
type prefixReading struct{ queries, hits float64 }

// liveServers returns a function that reads what engines and GPUs report, by target, for the live page. It reads the collectors and
// scrapes nothing. The function is for one goroutine.
func liveServers(engines, gpus prometheus.Collector) func() map[string]live.Server {
	reg := prometheus.NewRegistry()
	reg.MustRegister(engines, gpus)
	before := map[string][]prefixReading{}
	return func() map[string]live.Server {
		families, _ := reg.Gather() // a family that cannot be gathered is logged where /metrics is scraped
		values := map[string][]*dto.Metric{}
		for _, f := range families {
			values[f.GetName()] = f.GetMetric()
		}
		targets := map[string]live.Server{}
		for _, name := range []string{"replayd_engine_up", "replayd_gpu_up"} {
			for _, m := range values[name] {
				targets[labelOf(m, "target")] = live.Server{}
			}
		}
		for target := range targets {
			engine := func(name string) reported {
				return reportedBy(values["replayd_engine_"+name], target, "replica", "rank")
			}
			gpu := func(name string) reported { return reportedBy(values["replayd_gpu_"+name], target, "hostname", "uuid") }
			power, busy := gpu("power_watts"), gpu("sm_active_ratio")
			if len(busy) == 0 {
				busy = gpu("utilization_ratio")
			}
			now := prefixReading{engine("prefix_cache_queries_tokens_total").sum(), engine("prefix_cache_hits_tokens_total").sum()}
			kept := before[target]
			kept = append(kept[max(0, len(kept)-hitReadings):], now)
			before[target] = kept
			targets[target] = live.Server{
				EngineDown: engine("up").most() == 0, GPUsDown: reportedBy(values["replayd_gpu_up"], target, "source", "address").most() == 0,
				Running: engine("requests_running").sum(), Waiting: engine("requests_waiting").sum(), KVCache: engine("kv_cache_usage_ratio").most(),
				PrefixHits: hitRatio(kept[0], now), GPUs: max(len(power), len(busy)), Power: power.sum(), Utilization: busy.sum() / float64(len(busy)),
			}
		}
		return targets
	}
}

// hitRatio returns the hit ratio between two readings. It is NaN without queries, if an engine does not count them, and after a
// restart.
func hitRatio(first, last prefixReading) float64 {
	queries, hits := last.queries-first.queries, last.hits-first.hits
	if !(queries > 0) || hits < 0 || hits > queries {
		return math.NaN()
	}
	return hits / queries
}

// reported has the values of one metric of a target, one for each replica, rank or GPU.
type reported map[[2]string]float64

// reportedBy returns the largest value for each pair of labels. MIG instances are left out: they are parts of their GPU.
func reportedBy(metrics []*dto.Metric, target, first, second string) reported {
	r := reported{}
	for _, m := range metrics {
		if labelOf(m, "target") != target || labelOf(m, "mig_instance") != "" {
			continue
		}
		key := [2]string{labelOf(m, first), labelOf(m, second)}
		v := m.GetGauge().GetValue() + m.GetCounter().GetValue() // one of them is set
		if old, ok := r[key]; !ok || v > old {
			r[key] = v
		}
	}
	return r
}

// sum returns the sum, NaN without values.
func (r reported) sum() float64 {
	if len(r) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, v := range r {
		sum += v
	}
	return sum
}

// most returns the maximum, NaN without values.
func (r reported) most() float64 {
	most := math.NaN()
	for _, v := range r {
		if !(most >= v) {
			most = v
		}
	}
	return most
}

func labelOf(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}
