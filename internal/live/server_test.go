package live

import (
	"bytes"
	"math"
	"testing"
	"time"
)

// TestServers: the servers are read once a slot, while somebody watches and never else.
func TestServers(t *testing.T) {
	reads := 0
	b := New(Options{Servers: func() map[string]Server {
		reads++
		return map[string]Server{"vllm": {GPUsDown: true, Running: 5, Waiting: math.NaN(), KVCache: 0.25, PrefixHits: 0.5, GPUs: 2, Power: 612, Utilization: 0.75}}
	}})
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
	const want = `"server":{"engine_down":false,"gpus_down":true,"running":5,"waiting":null,"kv_cache":0.25,"prefix_hits":0.5,"gpus":2,"power":612,"utilization":0.75}`
	if text := b.all(); reads != 2 || bytes.Count(text, []byte(`"server":`)) != 1 || !bytes.Contains(text, []byte(want)) {
		t.Errorf("want 2 readings and %s, once, got %d and %s", want, reads, text)
	}
	delete(b.viewers, v)
	b.tick(now.Add(20*second), 4)
	if text := b.all(); reads != 2 || bytes.Contains(text, []byte(`"server":`)) {
		t.Errorf("want nothing old once nobody watches, got %d readings and %s", reads, text)
	}
}
