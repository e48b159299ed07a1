package daemon

import (
	"math"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// several combines several collectors into one.
type several []prometheus.Collector

func (s several) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range s {
		c.Describe(ch)
	}
}

func (s several) Collect(ch chan<- prometheus.Metric) {
	for _, c := range s {
		c.Collect(ch)
	}
}

// TestLiveServers checks that replicas, ranks and GPUs are summed, each once, and that prefix hits count between two
// readings.
func TestLiveServers(t *testing.T) {
	gauge := func(name string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "replayd_" + name}, append([]string{"target"}, labels...))
	}
	counter := func(name string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "replayd_engine_" + name}, []string{"target", "replica", "rank"})
	}
	up, running, cache := gauge("engine_up", "replica"), gauge("engine_requests_running", "replica", "rank"), gauge("engine_kv_cache_usage_ratio", "replica", "rank")
	queries, hits := counter("prefix_cache_queries_tokens_total"), counter("prefix_cache_hits_tokens_total")
	power, busy := gauge("gpu_power_watts", "gpu", "uuid", "hostname", "mig_instance"), gauge("gpu_utilization_ratio", "gpu", "uuid", "hostname", "mig_instance")
	gpuUp := gauge("gpu_up", "source", "address")
	read := liveServers(several{up, running, cache, queries, hits}, several{power, busy, gpuUp})

	up.WithLabelValues("a", "r1").Set(1)
	up.WithLabelValues("a", "r2").Set(0)
	up.WithLabelValues("b", "r1").Set(0)
	gpuUp.WithLabelValues("b", "dcgm_exporter", "g:9400").Set(0)
	for rank, n := range map[string]float64{"0": 3, "1": 4} {
		running.WithLabelValues("a", "r1", rank).Set(n)
		cache.WithLabelValues("a", "r1", rank).Set(n / 10)
	}
	queries.WithLabelValues("a", "r1", "0").Add(1000)
	hits.WithLabelValues("a", "r1", "0").Add(900)
	for _, uuid := range []string{"u1", "u2"} {
		power.WithLabelValues("a", "0", uuid, "h", "").Set(300)
		power.WithLabelValues("a", "0", uuid, "h", "1").Set(100) // a MIG instance of the GPU
		busy.WithLabelValues("a", "0", uuid, "h", "").Set(0.5)
	}
	if got := read()["a"]; !math.IsNaN(got.PrefixHits) {
		t.Errorf("want no prefix hits after one reading, got %v", got.PrefixHits)
	}
	queries.WithLabelValues("a", "r1", "0").Add(100)
	hits.WithLabelValues("a", "r1", "0").Add(25)
	servers := read()
	if a := servers["a"]; a.Running != 7 || !math.IsNaN(a.Waiting) || a.KVCache != 0.4 || a.PrefixHits != 0.25 || a.GPUs != 2 || a.Power != 600 || a.Utilization != 0.5 {
		t.Errorf("want 7 running, no waiting, 0.4, 0.25, 2 GPUs of 600 W at 0.5; got %+v", a)
	}
	if b, ok := servers["b"]; !ok || !math.IsNaN(b.Running) || b.GPUs != 0 || !math.IsNaN(b.Utilization) {
		t.Errorf("want a server of which nothing is known, got %+v, %v", b, ok)
	}
	if a, b := servers["a"], servers["b"]; a.EngineDown || a.GPUsDown || !b.EngineDown || !b.GPUsDown {
		t.Errorf("want the engine and the GPUs of b down, got %+v and %+v", a, b)
	}
	hits.DeleteLabelValues("a", "r1", "0") // the engine has restarted
	if got := read()["a"].PrefixHits; !math.IsNaN(got) {
		t.Errorf("want no prefix hits after a restart, got %v", got)
	}
}
