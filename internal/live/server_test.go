package live

import (
	"bytes"
	"testing"
	"time"

	"replayd/internal/scrape"
)

// series returns a series of an engine or a GPU.
func series(name string, v float64) *scrape.Series {
	return &scrape.Series{Family: &scrape.Family{Name: "replayd_" + name}, Value: v}
}

// TestServers: the servers are read once a slot, while somebody watches and never else.
func TestServers(t *testing.T) {
	reads := 0
	b := New(Options{
		Engines: func() []scrape.Values {
			reads++
			return []scrape.Values{{Target: "vllm", Up: true, Series: []*scrape.Series{
				series("engine_requests_running", 5), series("engine_kv_cache_usage_ratio", 0.25),
			}}}
		},
		GPUs: func() []scrape.Values {
			return []scrape.Values{{Target: "vllm", Series: []*scrape.Series{
				series("gpu_power_watts", 306), series("gpu_power_watts", 306),
				series("gpu_sm_active_ratio", 0.5), series("gpu_sm_active_ratio", 1),
			}}}
		},
	})
	newFeed(b, WorkloadOptions{Name: "chat", Target: "vllm"})
	newFeed(b, WorkloadOptions{Name: "other", Target: "tgi"})
	now := time.Unix(946684800, 0)
	for i := range 10 {
		b.tick(now.Add(time.Duration(i)*second), i/5)
	}
	if reads != 0 {
		t.Errorf("want no reading while nobody watches, got %d", reads)
	}
	v, _, joined := b.join("host", nil)
	if !joined {
		t.Fatal("want to join")
	}
	for i := 10; i < 20; i++ {
		b.tick(now.Add(time.Duration(i)*second), i/5)
	}
	const want = `"server":{"engine_down":false,"gpus_down":true,"running":5,"waiting":null,"kv_cache":0.25,` +
		`"prefix_hits":null,"gpus":2,"power":612,"utilization":0.75}`
	if text := b.all(); reads != 2 || bytes.Count(text, []byte(`"server":`)) != 1 || !bytes.Contains(text, []byte(want)) {
		t.Errorf("want 2 readings and %s, once, got %d and %s", want, reads, text)
	}
	delete(b.viewers, v)
	b.tick(now.Add(20*second), 4)
	if text := b.all(); reads != 2 || bytes.Contains(text, []byte(`"server":`)) {
		t.Errorf("want nothing old once nobody watches, got %d readings and %s", reads, text)
	}
}

// TestSumServers: replicas, ranks and GPUs are summed, each once, and prefix hits count between two readings.
func TestSumServers(t *testing.T) {
	queries := series("engine_prefix_cache_queries_tokens_total", 1000)
	hits := series("engine_prefix_cache_hits_tokens_total", 900)
	engines := []scrape.Values{
		{Target: "a", Up: true, Series: []*scrape.Series{
			series("engine_requests_running", 3), series("engine_kv_cache_usage_ratio", 0.3),
			series("engine_requests_running", 4), series("engine_kv_cache_usage_ratio", 0.4), queries, hits, series("engine_external_prefix_cache_hits_tokens_total", 0),
		}},
		{Target: "a"},
		{Target: "b"},
	}
	var ofA []*scrape.Series
	for range 2 {
		power, instance := series("gpu_power_watts", 300), series("gpu_power_watts", 100)
		instance.Part = true
		ofA = append(ofA, power, instance, series("gpu_utilization_ratio", 0.5))
	}
	gpus := []scrape.Values{{Target: "a", Up: true, Series: ofA}, {Target: "b"}}
	b := New(Options{Engines: func() []scrape.Values { return engines }, GPUs: func() []scrape.Values { return gpus }})
	if got := b.readServers(true, 0)["a"]; got.PrefixHits.known() {
		t.Errorf("want no prefix hits after one reading, got %v", got.PrefixHits)
	}
	queries.Value, hits.Value = 1100, 925
	servers := b.readServers(true, 0)
	if a := servers["a"]; a.Running != 7 || a.Waiting.known() || a.KVCache != 0.4 || a.PrefixHits != 0.25 ||
		a.GPUs != 2 || a.Power != 600 || a.Utilization != 0.5 {
		t.Errorf("want 7 running, no waiting, 0.4, 0.25, 2 GPUs of 600 W at 0.5; got %+v", a)
	}
	if b := servers["b"]; b.Running.known() || b.GPUs != 0 || b.Utilization.known() {
		t.Errorf("want a server of which nothing is known, got %+v", b)
	}
	if a, b := servers["a"], servers["b"]; a.EngineDown || a.GPUsDown || !b.EngineDown || !b.GPUsDown {
		t.Errorf("want the engine and the GPUs of b down, got %+v and %+v", a, b)
	}
	queries.Value, hits.Value = 10, 0 // the engine has restarted
	if got := b.readServers(true, 0)["a"].PrefixHits; got.known() {
		t.Errorf("want no prefix hits after a restart, got %v", got)
	}
}
