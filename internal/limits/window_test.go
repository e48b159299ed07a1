package limits

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A window sums the current slot and the slots before it, however large the steps between are.
func TestWindow(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		slots := 1 + rnd.IntN(5)
		w := newWindow(slots, 10*time.Millisecond)
		type counted struct{ at, n int }
		var all []counted
		begin := rnd.IntN(1000)
		for now := begin; now < begin+1000; now += rnd.IntN(2) * rnd.IntN(1+rnd.IntN(80)) {
			w.total(at(now))
			for range rnd.IntN(3) {
				c := counted{now - rnd.IntN(2)*rnd.IntN(now-begin+1), rnd.IntN(9) - 4} // now or in the past
				w.add(at(c.at), int64(c.n))
				if oldest := (now-begin)/10 - slots + 1; (c.at-begin)/10 >= oldest {
					all = append(all, c)
				}
			}
			sum := 0
			for _, c := range all {
				if (c.at-begin)/10 > (now-begin)/10-slots {
					sum += c.n
				}
			}
			if w.sum != int64(sum) {
				t.Fatalf("seed %d at %d ms of %d slots: want %d, got %d", seed, now, slots, sum, w.sum)
			}
			if rnd.IntN(100) == 0 {
				break
			}
			now++
		}
	}
}
