//go:build peers

package peers_test

import (
	"testing"
	"time"

	"replayd/test/machine"
)

// A hundred requests are in flight at all times. Every answer has its 500 tokens, and the engine ends one each 8 ms.
// The same load with few and with many chunks separates the CPU time of a request from that of a chunk.
func TestAHundredAtAllTimes(t *testing.T) {
	spent := map[int]time.Duration{}
	for _, c := range []struct {
		chunks int // of an answer: the first has one token
		tokens string
	}{{21, "25"}, {101, "5"}} {
		if c.chunks > 21 && !full(t) {
			break
		}
		dir := t.TempDir()
		e := start(t, dir, append(append([]string{"--model", "m"}, steady...), "--chunk-tokens", c.tokens)...)
		s := shell(t, dir, e.address, "replayd run --model m --url $ENDPOINT_URL --streaming --concurrency 100 --request-count 1000 --isl 1000 --osl 500 --extra-inputs ignore_eos:true")
		well(t, s)
		s.all = e.received(t)
		s.count(t, 1000)
		for _, r := range s.all {
			if r.OutputTokens != 500 {
				t.Fatalf("want 500 tokens, got %+v", r)
			}
		}
		most, share := crowd(s.all)
		spent[c.chunks] = s.cpu
		t.Logf("%d chunks an answer: CPU %v, in flight in the middle %s", c.chunks, s.cpu, shares(share))
		if most != 100 {
			t.Errorf("want 100 at once at most, got %d", most)
		}
		// A lane looks free from the time its answer has left the engine until its next request arrives.
		if (share[100] < 0.8 || share[100]+share[99] < 0.995) && machine.Measures(t, "the requests in flight") {
			t.Errorf("want 100 at once in the middle, 99 for as long as one follows another, got %s", shares(share))
		}
		if each := s.cpu / 1000; each > 10*time.Millisecond && machine.Measures(t, "the CPU time of a request") {
			t.Errorf("want less than 10 ms of CPU for a request, got %v", each)
		}
	}
	if full(t) {
		chunk := (spent[101] - spent[21]) / (80 * 1000)
		t.Logf("CPU: %v a request, start and report included, and %v a chunk", spent[21]/1000-21*chunk, chunk)
	}
}
