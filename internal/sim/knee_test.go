package sim

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// kneeOptions make closed loops resemble the published sweep over 10, 50, 100, 200 and 500 requests in flight (prompts
// of 1,000 tokens, answers of 500; Qwen3-0.6B on vLLM), at a tenth of the concurrency: 3,045, 12,890, 22,521, 35,999
// and 29,836 output tokens/s, and latencies that rise.
func kneeOptions() Options {
	o := Defaults()
	o.PrefillRate, o.DecodeRate, o.BatchCost = 12500, 330, 0.036
	o.CacheTokens, o.PreemptCost = 30000, 1.2
	o.ChunkTokens = 10
	return o
}

// Throughput rises with the requests in flight up to a knee and falls beyond it. Every latency only rises.
func TestThroughputHasAKnee(t *testing.T) {
	const requests, output = 100, 500
	published := []float64{304.5, 1289, 2252.1, 3599.9, 2983.6}
	var ttft, gap []time.Duration
	for i, inFlight := range []int{1, 5, 10, 20, 50} {
		simulate(t, kneeOptions(), func(b bench) {
			start := time.Now()
			var sent, ttftSum, gapSum atomic.Int64
			var wg sync.WaitGroup
			for range inFlight {
				wg.Go(func() {
					for n := sent.Add(1); n <= requests; n = sent.Add(1) {
						r := b.post(b.Context(), pathCompletions, "", completion(text(fmt.Sprint("w", n), 1000), output))
						if len(r.at) == 0 || r.usage.Output != output {
							b.Errorf("%d tokens in %d chunks: %v", r.usage.Output, len(r.at), r.err)
							return
						}
						ttftSum.Add(int64(r.at[0]))
						gapSum.Add(int64(r.at[len(r.at)-1]-r.at[0]) / (output - 1))
					}
				})
			}
			wg.Wait()
			rate := requests * output / time.Since(start).Seconds()
			ttft, gap = append(ttft, time.Duration(ttftSum.Load()/requests)), append(gap, time.Duration(gapSum.Load()/requests))
			b.Logf("%d in flight: %.0f tokens/s, TTFT %v, ITL %v", inFlight, rate, ttft[i], gap[i])
			if want := published[i]; rate < 0.9*want || rate > 1.1*want {
				b.Errorf("%d in flight: want %.0f tokens/s within a tenth, got %.0f", inFlight, want, rate)
			}
		})
	}
	if !slices.IsSorted(ttft) || !slices.IsSorted(gap) {
		t.Errorf("want latencies that rise, got TTFT %v and ITL %v", ttft, gap)
	}
}
