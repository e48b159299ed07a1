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
	if got := member(b.readServers(true, 0)["a"], "prefix_hits"); got.(value).known() {
		t.Errorf("want no prefix hits after one reading, got %v", got)
	}
	queries.Value, hits.Value = 1100, 925
	servers := b.readServers(true, 0)
	for target, want := range map[string]string{
		"a": `{"engine_down":false,"gpus_down":false,"running":7,"waiting":null,"kv_cache":0.4,"prefix_hits":0.25,"gpus":2,"power":600,"utilization":0.5}`,
		"b": `{"engine_down":true,"gpus_down":true,"running":null,"waiting":null,"kv_cache":null,"prefix_hits":null,"gpus":0,"power":null,"utilization":null}`,
	} {
		if got := encode(servers[target]); string(got) != want {
			t.Errorf("%s: want %s, got %s", target, want, got)
		}
	}
	queries.Value, hits.Value = 10, 0 // the engine has restarted
	if got := member(b.readServers(true, 0)["a"], "prefix_hits"); got.(value).known() {
		t.Errorf("want no prefix hits after a restart, got %v", got)
	}
}
