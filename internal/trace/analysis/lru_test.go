package analysis

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/internal/trace"
	"replayd/internal/trace/prefix"

	"github.com/google/go-cmp/cmp"
)

// simulate is an LRU cache of capacity blocks by its definition: a list of prefixes, the most recently used one in
// front.
func simulate(rows []trace.Record, size, capacity int) (blocks, tokens int64) {
	var cache []string
	longest := map[string]int{}
	for _, r := range rows {
		var keys []string
		key := ""
		for _, id := range r.Blocks {
			key += fmt.Sprint(id, " ")
			keys = append(keys, key)
		}
		hit := true
		for i, key := range keys {
			length := min(size, r.InputTokens-i*size)
			if hit = hit && slices.Contains(cache, key); hit {
				blocks++
				tokens += int64(min(length, longest[key]))
			}
			longest[key] = max(longest[key], length)
		}
		for _, key := range slices.Backward(keys) {
			if i := slices.Index(cache, key); i >= 0 {
				cache = slices.Delete(cache, i, i+1)
			}
			cache = slices.Insert(cache, 0, key)
			cache = cache[:min(len(cache), capacity)]
		}
	}
	return blocks, tokens
}

func TestLRUIsThatOfACache(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	for range 25 {
		f := openFile(t, randomTrace(rng, 32), trace.Options{BlockTokens: 32})
		a, rows := analyze(t, f), allRows(t, f)
		for n := range 40 {
			if n > 20 {
				n *= 10
			}
			blocks, tokens := a.LRU.Hits(n)
			wantBlocks, wantTokens := simulate(rows, 32, n)
			if blocks != wantBlocks || tokens != wantTokens {
				t.Fatalf("%d blocks: got hits of %d blocks and %d tokens, want %d and %d", n, blocks, tokens, wantBlocks, wantTokens)
			}
		}
		if blocks, tokens := a.LRU.Hits(math.MaxInt); blocks != f.Stats.Prefix.HitBlocks || tokens != f.Stats.Prefix.HitTokens {
			t.Fatalf("endless: got %d and %d, want %d and %d", blocks, tokens, f.Stats.Prefix.HitBlocks, f.Stats.Prefix.HitTokens)
		}
	}
}

// compact runs many times here. The reference is a list whose most recently used node moves to the front.
func TestLRUOfManyUses(t *testing.T) {
	rng := rand.New(rand.NewPCG(43, 44))
	r := newRecency()
	var list []uint32
	want := make([]int64, 3000)
	for range 50_000 {
		node := uint32(1 + rng.IntN(1+rng.IntN(len(want))))
		if i := slices.Index(list, node); i >= 0 {
			want[i]++
			list = slices.Delete(list, i, i+1)
		}
		list = slices.Insert(list, 0, node)
		r.add([]prefix.Step{{Node: node}})
	}
	if diff := cmp.Diff(want[:len(r.blocks)], r.blocks); diff != "" {
		t.Error(diff)
	}
	if totalOf(want) != totalOf(r.blocks) || r.live != len(list) || len(r.slots) > 3*4096 {
		t.Errorf("%d hits, %d prefixes in %d slots, want %d and %d in few", totalOf(r.blocks), r.live, len(r.slots), totalOf(want), len(list))
	}
}

func TestLRUOfMooncake(t *testing.T) {
	f, err := trace.Open(t.Context(), publicTrace(t, "mooncake_conversation.jsonl"), trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	start := time.Now()
	a := analyze(t, f)
	t.Logf("288,500 blocks: %v", time.Since(start))
	rows := allRows(t, f)
	// Each id of this trace has one predecessor, so an id identifies its prefix.
	const gone = math.MaxUint64
	for _, n := range []int{1, 1000, 20_000} {
		var blocks int64
		used := map[uint64]int{} // id to its index in order
		var order []uint64       // each use; gone if the id was used again since
		first, live := 0, 0
		for _, r := range rows {
			for _, id := range r.Blocks {
				if _, in := used[id]; !in {
					break
				}
				blocks++
			}
			for _, id := range slices.Backward(r.Blocks) {
				if place, in := used[id]; in {
					order[place] = gone
					live--
				}
				used[id] = len(order)
				order = append(order, id)
				for live++; live > n; first++ {
					if order[first] != gone {
						delete(used, order[first])
						live--
					}
				}
			}
		}
		if got, _ := a.LRU.Hits(n); got != blocks {
			t.Errorf("%d blocks: got hits of %d, want %d", n, got, blocks)
		}
	}
}

func TestRoundSizes(t *testing.T) {
	for most, want := range map[int]string{
		1: "[1]", 2: "[1 2]", 3: "[1 2 5]", 1999: "[1 2 5 10 20 50 100 200 500 1000 2000]", 2000: "[10 20 50 100 200 500 1000 2000]",
		182_790: "[100 200 500 1000 2000 5000 10000 20000 50000 100000 200000]",
	} {
		if got := strings.TrimSpace(fmt.Sprint(roundSizes(most))); got != want {
			t.Errorf("%d: got %s, want %s", most, got, want)
		}
	}
}
