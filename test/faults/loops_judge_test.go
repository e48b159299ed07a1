//go:build faults

package faults_test

import (
	"cmp"
	"slices"
	"testing"

	"replayd/internal/sim"

	"replayd/test/outside"
)

// A loopKey is everything that the body of a request depends on, except the loop: the lengths of prompt and answer, and
// the block that the prompt is a piece of.
type loopKey struct{ input, output, block int }

// judgeLoops compares the engine's log with the trace: each row of each loop once, except for as many as the daemon
// counted as missed by the end of some loops.
func judgeLoops(t *testing.T, rows []loopRow, loops int, missed map[int]int, log []sim.LogEntry) {
	t.Helper()
	faults := 0
	fault := func(format string, args ...any) {
		if faults++; faults <= 20 {
			t.Errorf(format, args...)
		}
	}
	slices.SortStableFunc(log, func(a, b sim.LogEntry) int { return cmp.Compare(a.Arrival, b.Arrival) })
	times := make([][]int, loops) // by loop and row
	for i := range times {
		times[i] = make([]int, len(rows))
	}
	texts := map[loopKey]map[int64]string{} // by loop
	first := map[[2]int64]bool{}            // by loop and block
	for _, e := range log {
		_, loop, row := outside.Place(t, e.ID)
		if row < 0 || row >= len(rows) || loop < 0 || loop > int64(loops) {
			fault("%s: want a row below %d of a loop up to %d", e.ID, len(rows), loops)
			continue
		}
		r := rows[row]
		if loop < int64(loops) {
			times[loop][row]++
		}
		if e.Outcome != sim.OK || e.PromptTokens != r.Input || e.MaxTokens != r.Output || e.OutputTokens != r.Output {
			fault("%s: want ok with %d prompt tokens and %d of an answer, got %s with %d, asked for %d, and %d", e.ID, r.Input, r.Output,
				e.Outcome, e.PromptTokens, e.MaxTokens, e.OutputTokens)
		}
		key := loopKey{r.Input, r.Output, r.Hashes[0]}
		if texts[key] == nil {
			texts[key] = map[int64]string{}
		}
		if text, ok := texts[key][loop]; ok && text != e.BodySHA256 {
			fault("%s: want the body of the loop's other rows of %+v, it differs", e.ID, key)
		}
		texts[key][loop] = e.BodySHA256
		// The first use of a block in a loop must not hit the cache: the cached text would be another loop's.
		if place := [2]int64{loop, int64(key.block)}; !first[place] {
			first[place] = true
			if e.CachedTokens != 0 {
				fault("%s: want none of block %d in the engine's cache, it has %d tokens", e.ID, key.block, e.CachedTokens)
			}
		}
	}
	absent := 0
	for loop := range times {
		for row, n := range times[loop] {
			if n == 0 {
				absent++
			}
			if n > 1 {
				fault("row %d of loop %d: want it once, it was sent %d times", row, loop, n)
			}
		}
		if of, ok := missed[loop+1]; ok && of != absent {
			fault("until the end of loop %d: want %d rows that were not sent, as the daemon has counted, got %d", loop, of, absent)
		}
	}
	for key, by := range texts {
		distinct := map[string]int64{}
		for loop, text := range by {
			if other, ok := distinct[text]; ok {
				fault("%+v: loops %d and %d have one text", key, loop, other)
			}
			distinct[text] = loop
		}
	}
	if faults > 0 {
		t.Errorf("%d faults in %d requests", faults, len(log))
	}
	t.Logf("%d requests in the engine's log, %d different rows after the cut, %d times a block was new in its loop", len(log), len(texts), len(first))
}
