package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// scenario is a second of an engine: answers of both kinds, a cache hit, a refusal, a client that leaves.
func scenario(b bench) {
	b.Helper()
	say := func(id, prompt string, output int) {
		b.post(b.Context(), pathCompletions, id, completion(prompt, output))
	}
	pass(time.Second)
	say("w/0/0", text("a", 100), 5)  // prefill 0.1 s, decode 4·10 ms
	say("w/0/1", text("a", 100), 1)  // 96 tokens are cached: 4 ms
	say("w/0/2", "about", maxAnswer) // refused
	ctx, cancel := context.WithTimeout(b.Context(), 61*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { b.post(ctx, pathCompletions, "w/0/3", completion(text("b", 50), 10)) }) // has 2 of its tokens when it leaves
	pass(55 * time.Millisecond)
	b.post(b.Context(), pathChat, "", `{"messages":[{"content":"about after"}],"max_tokens":2,"ignore_eos":true}`)
	wg.Wait()
	synctest.Wait()
}

const maxAnswer = -1 // no limit that a server accepts

func scenarioOptions() Options {
	o := Defaults()
	o.PrefillRate, o.DecodeRate, o.BatchCost, o.Slots, o.CacheTokens = 1000, 100, 0, 4, 1600
	o.MaxModelLen = 1000
	return o
}

func TestGoldenPage(t *testing.T) {
	simulate(t, scenarioOptions(), func(b bench) {
		golden(b.T, "start.prom", []byte(b.get("/metrics")))
		scenario(b)
		golden(b.T, "metrics.prom", []byte(b.get("/metrics")))
	})
}

// The page's gauges while requests are in flight.
func TestPageGauges(t *testing.T) {
	o := scenarioOptions()
	o.Slots = 1
	simulate(t, o, func(b bench) {
		var wg sync.WaitGroup
		for _, id := range []string{"a", "b"} {
			wg.Go(func() { b.post(b.Context(), pathCompletions, "", completion(text(id, 100), 10)) })
		}
		pass(125 * time.Millisecond) // the first has 3 tokens, at 100, 110 and 120 ms
		page := b.get("/metrics")
		for _, want := range []string{
			`vllm:num_requests_running{engine="0",model_name="sim"} 1`,
			`vllm:num_requests_waiting{engine="0",model_name="sim"} 1`,
			`vllm:kv_cache_usage_perc{engine="0",model_name="sim"} 0.064375`, // (100+3)/1600
		} {
			if !strings.Contains(page, want+"\n") {
				b.Errorf("want %s in\n%s", want, page)
			}
		}
		wg.Wait()
	})
}

// Power is 70 W + 630 W · the share of slots taken; energy is its integral.
func TestGPU(t *testing.T) {
	o := Defaults()
	o.Slots, o.TTFT, o.ITL = 2, time.Second, time.Second
	simulate(t, o, func(b bench) {
		pass(10 * time.Second)
		if page := b.get("/dcgm/metrics"); !strings.Contains(page, "} 700000\n") { // 10 s · 70 W in mJ
			b.Errorf("idle: want 700 J in\n%s", page)
		}
		var wg sync.WaitGroup
		wg.Go(func() { b.post(b.Context(), pathCompletions, "", completion("a", 4)) }) // from 10 to 14 s
		pass(1500 * time.Millisecond)
		wg.Go(func() { b.post(b.Context(), pathCompletions, "", completion("b", 1)) }) // prefill from 11.5 to 12.5 s
		pass(500 * time.Millisecond)
		// 700 J, then 1.5 s at 385 W and 0.5 s at 700 W: 700 + 577.5 + 350.
		golden(b.T, "dcgm.prom", []byte(b.get("/dcgm/metrics")))
		wg.Wait()
		// In total one second of two slots, three of one, and the idle seconds before.
		p := b.engine.batch.power
		p.mu.Lock()
		defer p.mu.Unlock()
		if want := 700 + 3*385 + 700.0; p.joules != want {
			b.Errorf("energy: got %v J, want %v", p.joules, want)
		}
	})
}

func TestGoldenLog(t *testing.T) {
	var log bytes.Buffer
	o := scenarioOptions()
	o.Log, o.LogChunks = &log, true
	simulate(t, o, func(b bench) {
		scenario(b)
		golden(b.T, "log.jsonl", log.Bytes())
		// The instants again, by hand: the first request came 1 s after the bubble's epoch, its tokens from 100 ms on.
		var e LogEntry
		if err := json.Unmarshal(bytes.SplitN(log.Bytes(), []byte("\n"), 2)[0], &e); err != nil {
			b.Fatal(err)
		}
		arrival := time.Date(2000, 1, 1, 0, 0, 1, 0, time.UTC).UnixNano()
		if e.Arrival != arrival || len(e.Chunks) != 5 || e.Chunks[0] != arrival+1e8 || e.Chunks[4] != arrival+1.4e8 || e.End != e.Chunks[4] {
			b.Errorf("got %+v", e)
		}
	})
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// A log that cannot be written does not stop the engine.
func TestLogFailure(t *testing.T) {
	o := Defaults()
	o.Log, o.TTFT, o.ITL = full{}, time.Millisecond, time.Millisecond
	simulate(t, o, func(b bench) {
		if r := b.post(b.Context(), pathCompletions, "", completion("a", 1)); r.status != 200 {
			b.Errorf("status %d", r.status)
		}
	})
}

// A handler works under any server, also one without deadlines, and does not outlive its client.
func TestRecorder(t *testing.T) {
	o, ended := Defaults(), &tally{outcomes: map[string]int{}}
	o.TTFT, o.ITL, o.Log = time.Nanosecond, time.Nanosecond, ended
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		if left {
			cancel()
		}
		w := httptest.NewRecorder()
		e.Handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, "POST", pathCompletions, strings.NewReader(completion("a", 3))))
		cancel()
		if got := strings.HasSuffix(w.Body.String(), done); got == left {
			t.Errorf("left %v: %s", left, w.Body)
		}
	}
	if got := ended.ended(); got[OK] != 1 || got[Gone] != 1 {
		t.Errorf("outcomes: %v", got)
	}
}
