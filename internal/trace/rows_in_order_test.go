package trace

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// For random sessions and waits as they are played: each row is read once, after its parents, at the latest of its own instant and what
// its parents and the waits allow, and in that order, from any offset. So a row is always read before it can be due.
func TestOrderFollowsTheWaits(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 15
	}
	for seed := range seeds {
		rnd := rand.New(rand.NewPCG(seed, 5))
		wait := func(recorded time.Duration) time.Duration { return min(recorded/4, 300*ms) }
		if seed%3 == 0 {
			wait = func(recorded time.Duration) time.Duration { return 20 * recorded }
		}
		var text strings.Builder
		text.WriteString(sessionsStart)
		n := 1 + rnd.IntN(200)
		if seed == 1 {
			n = 3 * Window // more than a file in another format may be out of order
		}
		instants := make([]time.Duration, n)
		last := map[int][]int{}
		for i := range n {
			s := rnd.IntN(6)
			fmt.Fprintf(&text, `{"row":%d,"input_length":%d,"hash_ids":[%d],"session_id":"s%d"`, i, 1+rnd.IntN(16), i, s)
			var after []string
			for _, p := range last[s][max(0, len(last[s])-4):] {
				if rnd.IntN(2) == 0 {
					recorded := rnd.IntN(2000)
					after = append(after, fmt.Sprintf(`{"row":%d,"wait":%d}`, p, recorded))
					instants[i] = max(instants[i], instants[p]+wait(time.Duration(recorded)*ms))
				}
			}
			fmt.Fprintf(&text, `,"after":[%s]`, strings.Join(after, ","))
			if len(after) == 0 || rnd.IntN(3) == 0 {
				at := rnd.IntN(1000)
				fmt.Fprintf(&text, `,"timestamp":%d`, at)
				instants[i] = max(instants[i], time.Duration(at)*ms)
			}
			text.WriteString("}\n")
			last[s] = append(last[s], i)
		}
		f, err := openContent(t, text.String(), Options{Wait: wait})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return int(instants[a] - instants[b]) })
		all := read(t, f, 0)
		for i, r := range all {
			if i >= n || r.Number != order[i] || r.Offset != instants[r.Number] || r.Line != r.Number+2 || int(r.Blocks[0]) != r.Number {
				t.Fatalf("seed %d: want row %d at %v, got %+v", seed, order[min(i, n-1)], instants[order[min(i, n-1)]], r)
			}
			shed := r
			shed.Shed()
			if again, err := f.Reread(shed); err != nil || cmp.Diff(r, again) != "" {
				t.Fatalf("seed %d: want %+v again, got %+v, %v", seed, r, again, err)
			}
		}
		if len(all) != n || f.Stats.Span != instants[order[n-1]] {
			t.Fatalf("seed %d: want %d rows over %v, got %d over %v", seed, n, instants[order[n-1]], len(all), f.Stats.Span)
		}
		for range 4 {
			from := time.Duration(rnd.Int64N(int64(f.Stats.Span) + 2))
			first := slices.IndexFunc(all, func(r Record) bool { return r.Offset >= from })
			if first < 0 {
				first = n
			}
			if diff := cmp.Diff(all[first:], read(t, f, from)); diff != "" && first < n {
				t.Fatalf("seed %d from %v: %s", seed, from, diff)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
