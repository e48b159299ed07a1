package prefix

import (
	"math/rand/v2"
	"testing"
)

// Numbers agrees with a map, for ids that count, ids that are hashes, and both mixed.
func TestNumbers(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		var got Numbers
		want := map[uint64]uint32{}
		for i := range 50_000 {
			id := uint64(i/2 + rnd.IntN(100))
			if seed%3 > 0 && rnd.IntN(int(2+seed)) == 0 {
				id = rnd.Uint64() >> (rnd.IntN(8) * 8)
			}
			number, ok := got.Find(id)
			if n, known := want[id]; ok != known || number != n {
				t.Fatalf("seed %d: id %d: want %d, %v, got %d, %v", seed, id, n, known, number, ok)
			}
			if !ok {
				got.add(id, uint32(len(want)))
				want[id] = uint32(len(want))
			}
		}
		if most := max(lowest, 4*got.n); len(got.low) > 2*most {
			t.Errorf("seed %d: want at most %d places for %d ids, got %d", seed, 2*most, got.n, len(got.low))
		}
	}
}
