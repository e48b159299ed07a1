package ids

import (
	"math/rand/v2"
	"runtime"
	"testing"
)

// A table agrees with a map, for ids that count, ids that are hashes, and both mixed.
func TestTable(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		var got Table
		want := map[uint64]uint32{}
		for i := range 50_000 {
			id := uint64(i/2 + rnd.IntN(100))
			if seed%3 > 0 && rnd.IntN(int(2+seed)) == 0 {
				id = rnd.Uint64() >> (rnd.IntN(8) * 8)
			}
			if number := got.Find(id); number != want[id] {
				t.Fatalf("seed %d: id %d: want %d, got %d", seed, id, want[id], number)
			}
			_, known := want[id]
			if rnd.IntN(10) == 0 && !known {
				got.Skip()
			}
			number, ok := got.Add(id)
			if !known {
				want[id] = uint32(got.Len())
			}
			if ok != known || number != want[id] || got.ID(number) != id {
				t.Fatalf("seed %d: id %d: want %d, %v, got %d, %v", seed, id, want[id], known, number, ok)
			}
		}
		for id, number := range want {
			if got.Find(id) != number {
				t.Fatalf("seed %d: id %d: want %d, got %d", seed, id, number, got.Find(id))
			}
		}
	}
}

// An id takes 16 bytes: 12 in its entry, 4 in a chain. One that counts from 0 has 4 in low instead, and 12 if two of three are missing.
// Nothing is copied when the table grows, so nothing is left to collect.
func TestBytesOfAnID(t *testing.T) {
	const n = 1 << 19
	for name, c := range map[string]struct {
		id    func(i uint64) uint64
		bytes float64
	}{
		"hashes":       {func(i uint64) uint64 { return i<<40 | Hash(i)>>24 }, 16},
		"counted":      {func(i uint64) uint64 { return i }, 16},
		"each third":   {func(i uint64) uint64 { return 3 * i }, 24},
		"each fourth":  {func(i uint64) uint64 { return 4 * i }, 16.5},
		"texts":        {func(i uint64) uint64 { return Hash([2]uint64{i, i}) }, 16},
		"32 bits":      {func(i uint64) uint64 { return Hash(i) >> 32 }, 16.5},
		"multiples":    {func(i uint64) uint64 { return i << 32 }, 16},
		"mostly large": {func(i uint64) uint64 { return 1<<64 - 1 - i }, 16},
	} {
		var table Table
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range uint64(n) {
			table.Add(c.id(i))
		}
		runtime.ReadMemStats(&after)
		got := float64(after.TotalAlloc-before.TotalAlloc) / n
		if got < c.bytes || got > c.bytes+1 {
			t.Errorf("%s: want %v bytes an id, got %.2f", name, c.bytes, got)
		}
	}
}

// The chains stay short, whatever the ids are.
func TestChains(t *testing.T) {
	var table Table
	const n = 100_000
	for i := range uint64(n) {
		table.Add(1<<63 + i<<20)
	}
	steps, longest := 0, 0
	for i := range uint32(n) {
		length := 0
		for number := *table.chains.At(i); number != 0; number = table.all.At(number).next {
			length++
			steps += length
		}
		longest = max(longest, length)
	}
	// With uniform hashes a chain has one entry in the mean, or up to two before its split: a search meets fewer than two.
	if mean := float64(steps) / n; mean > 2 || longest > 20 {
		t.Errorf("want chains of a step or two, got %.2f in the mean, %d at most", mean, longest)
	}
}

func BenchmarkTable(b *testing.B) {
	for name, id := range map[string]func(i uint64) uint64{
		"counted": func(i uint64) uint64 { return i }, "hashes": func(i uint64) uint64 { return i * 0x9e3779b97f4a7c15 },
	} {
		b.Run(name, func(b *testing.B) {
			var table Table
			for i := range uint64(b.N) {
				table.Add(id(i))
			}
		})
	}
}
