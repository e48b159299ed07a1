package prefix

import (
	"runtime"
	"testing"
)

// A distinct id takes 24 bytes, and nothing is left to collect while the tree grows: 1.5 million rows with three ids each take 108 MB.
func TestBytesOfADistinctID(t *testing.T) {
	const rows = 200_000
	for name, step := range map[string]uint64{"counted": 1, "hashes": 0x9e3779b97f4a7c15} {
		tree, blocks := New(512), make([]uint64, 3)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range uint64(rows) {
			for j := range blocks {
				blocks[j] = (3*i + uint64(j)) * step
			}
			tree.Add(blocks, 1500)
		}
		runtime.ReadMemStats(&after)
		if got := float64(after.TotalAlloc-before.TotalAlloc) / (3 * rows); got < 24 || got > 26 {
			t.Errorf("%s: want 24 bytes an id, got %.2f", name, got)
		}
		if s := tree.Stats(1500 * rows); s.IDs != 3*rows || s.Unique != 3*rows {
			t.Errorf("%s: want %d ids and prefixes, got %d and %d", name, 3*rows, s.IDs, s.Unique)
		}
	}
}
