package sim

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// slow is a reference implementation of the cache: keys by last use, the latest first.
type slow struct {
	room int
	keys []uint64
}

func (s *slow) use(keys []uint64) {
	for _, k := range slices.Backward(keys) {
		if at := slices.Index(s.keys, k); at >= 0 {
			s.keys = slices.Delete(s.keys, at, at+1)
		}
		s.keys = slices.Insert(s.keys, 0, k)
		s.keys = s.keys[:min(len(s.keys), s.room)]
	}
}

func (s *slow) lookup(keys []uint64) int {
	hit := 0
	for hit < len(keys) && slices.Contains(s.keys, keys[hit]) {
		hit++
	}
	s.use(keys[:hit])
	return hit
}

// Random prompts over a tree of prefixes: the cache hits the same keys as the reference, never holds more than its
// room, and never holds a block without the block before it.
func TestCacheProperties(t *testing.T) {
	for _, room := range []int{0, 1, 2, 7, 40, 1000} {
		r := rand.New(rand.NewPCG(1, uint64(room)))
		c, want := newCache(room), &slow{room: room}
		parent := make(map[uint64]uint64)
		for step := range 3000 {
			var keys []uint64
			key := uint64(1)
			for range 1 + r.IntN(8) {
				next := key*4 + uint64(r.IntN(3))
				parent[next] = key
				keys = append(keys, next)
				key = next
			}
			if r.IntN(2) == 0 {
				if got, wanted := c.lookup(keys), want.lookup(keys); got != wanted {
					t.Fatalf("room %d, step %d: hit %d blocks, want %d", room, step, got, wanted)
				}
			} else {
				c.store(keys)
				want.use(keys[:min(len(keys), room)])
			}
			if len(c.at) != len(want.keys) || len(c.at) > room || c.blocks.Len() != len(c.at) {
				t.Fatalf("room %d, step %d: holds %d blocks, want %d", room, step, len(c.at), len(want.keys))
			}
			for k := range c.at {
				if _, ok := c.at[parent[k]]; !ok && parent[k] != 1 {
					t.Fatalf("room %d, step %d: block %d is held, but not its prefix", room, step, k)
				}
			}
		}
	}
}

// On the beginning of a real trace, one request after the other, a large cache hits what an infinite cache with the
// trace's own blocks would hit: the longest prefix of ids seen before, in tokens.
func TestCacheOnTrace(t *testing.T) {
	dir := os.Getenv("REPLAYD_TRACES")
	if dir == "" {
		t.Skip("REPLAYD_TRACES is not set: no real traces to read")
	}
	f, err := os.Open(filepath.Join(dir, "mooncake_conversation.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const traceBlock, rows = 512, 1000
	o := Defaults()
	c := newCache(1 << 24)
	seen := make(map[uint32]bool)
	var total, hit, ideal int
	d := json.NewDecoder(f)
	for range rows {
		var row struct {
			Tokens int      `json:"input_length"`
			IDs    []uint32 `json:"hash_ids"`
		}
		if err := d.Decode(&row); err != nil {
			t.Fatal(err)
		}
		prefix := 0
		for prefix < len(row.IDs) && seen[row.IDs[prefix]] {
			prefix++
		}
		ideal += min(prefix*traceBlock, row.Tokens)
		for _, id := range row.IDs {
			seen[id] = true
		}
		p := newPrompt(testSeed, o.BlockTokens)
		p.template(o.TemplateTokens)
		for n := range row.Tokens - o.TemplateTokens {
			p.id(row.IDs[n/traceBlock]*traceBlock + uint32(n%traceBlock))
		}
		hit += o.BlockTokens * c.lookup(p.keys[:(p.tokens-1)/o.BlockTokens])
		c.store(p.keys)
		total += row.Tokens
	}
	got, want := float64(hit)/float64(total), float64(ideal)/float64(total)
	if want < 0.1 || math.Abs(got-want) > 0.01 {
		t.Errorf("hit ratio %.4f, want %.4f and that to be of some size", got, want)
	}
	t.Logf("hit ratio %.4f, the trace's own %.4f", got, want)
}

func BenchmarkCache(b *testing.B) {
	c := newCache(1 << 16)
	keys := make([]uint64, 750) // a prompt of 12,000 tokens
	r := rand.New(rand.NewPCG(1, 1))
	for b.Loop() {
		for i := range keys {
			keys[i] = r.Uint64()
		}
		c.lookup(keys)
		c.store(keys)
	}
}
