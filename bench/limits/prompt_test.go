//go:build bench && linux

package limits_test

import (
	"fmt"
	"testing"
	"time"

	"replayd/bench/lab"
	"replayd/bench/rig"
)

// TestPrompts shows how fast prompts are made, compared with a copy of the same bytes.
func TestPrompts(t *testing.T) {
	s, steal := rig.ReadSize(t), rig.WatchSteal(t)
	h := newHotPath(t)
	var made, copied []byte
	ways := []struct {
		name string
		once func() int // returns the number of bytes
	}{
		{"text", func() int { made, _ = h.prompter.AppendText(made[:0], &h.row, 1, 0); return len(made) }},
		{"token ids", func() int { made, _ = h.prompter.AppendIDs(made[:0], &h.row, 1, 0); return len(made) }},
		{"text and the whole HTTP message", func() int { return h.message(t) }},
		{"the floor: a copy", func() int { copied = append(copied[:0], h.text...); return len(copied) }},
	}
	speeds := make([][]float64, len(ways))
	for range s.Rounds {
		for i, w := range ways {
			bytes, began := 0, time.Now()
			for time.Since(began) < s.Slice/4 {
				bytes += w.once()
			}
			speeds[i] = append(speeds[i], float64(bytes)/1e6/time.Since(began).Seconds())
		}
	}
	table := &lab.Table{
		Title: fmt.Sprintf("Prompts of %d tokens (%d bytes of text) in blocks of 512, on one core; medians of %d rounds.", h.row.InputTokens, len(h.text), s.Rounds),
		Head:  []string{"what", "MB/s", "million tokens/s"},
	}
	for i, w := range ways {
		mb := lab.Median(speeds[i]...)
		table.Add(w.name, lab.Number(mb), lab.Number(mb/float64(w.once())*float64(h.row.InputTokens)))
	}
	rig.Results(t, "prompts", steal, table)
}
