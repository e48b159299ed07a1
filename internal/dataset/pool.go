package dataset

import (
	"cmp"
	"fmt"
	"io"
	"math/bits"

	"replayd/internal/trace"
)

// randomPool draws rows with replacement. Each file is a pool, and a row has one prompt from each pool.
func (b *builder) randomPool(path string) error {
	paths, err := files(path)
	if err != nil {
		return err
	}
	var pools [][]turn
	for _, path := range paths {
		var pool []turn
		err := b.file(path, func(in io.Reader, name string) error {
			return b.lines(in, name, func(o object) error {
				for _, key := range []string{"turns", "session_id", "delay", "timestamp"} {
					if o.value(key) != nil {
						o.fault(key, "none in a pool")
					}
				}
				t := o.turn()
				pool = append(pool, t)
				b.texts(t.texts...)
				return b.reserve(t.bytes(), name)
			})
		})
		if err != nil {
			return err
		}
		if len(pool) == 0 && b.faults.Count == 0 {
			return fmt.Errorf("%s: want at least one prompt, got none", path)
		}
		pools = append(pools, pool)
	}
	if b.faults.Count > 0 {
		return nil
	}
	return b.draw(pools, path)
}

func (b *builder) draw(pools [][]turn, name string) error {
	for row := range cmp.Or(b.options.Draws, defaultDraws) {
		t := turn{role: "user"}
		for i, pool := range pools {
			one := pool[below(mix(b.options.Seed, uint64(row), uint64(i)), len(pool))]
			t.texts = append(t.texts, one.texts...)
			t.output = max(t.output, one.output)
			if one.extra != nil {
				t.extra = one.extra
			}
		}
		if err := b.add(t.row(), name); err != nil {
			return err
		}
	}
	return nil
}

// mix returns 64 random bits for a key, with a step of SplitMix64 for each part.
func mix(parts ...uint64) (z uint64) {
	for _, part := range parts {
		z = trace.Mix(z ^ part)
	}
	return z
}

// below maps 64 random bits to a number from 0 to n−1.
func below(drawn uint64, n int) int {
	high, _ := bits.Mul64(drawn, uint64(n))
	return int(high)
}
