package canary

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// For any number of blocks the history has the first, the latest and, between them, every 2ⁿ-th: at most MostBlocks and the latest, and
// at least half as many if there were so many.
func TestHistoryOfBlocks(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	counts := []int64{0, 1, 2, MostBlocks - 1, MostBlocks, MostBlocks + 1, 2*MostBlocks - 1, 2 * MostBlocks, 2*MostBlocks + 1, 8*MostBlocks + 3}
	for range 60 {
		counts = append(counts, random.Int64N(40*MostBlocks))
	}
	for _, n := range counts {
		var h History
		for i := range n {
			h.Block(Block{Number: i + 1})
		}
		blocks, every := h.Blocks()
		if n == 0 {
			if len(blocks) != 0 {
				t.Fatalf("%d blocks of none", len(blocks))
			}
			continue
		}
		want := []int64{}
		for number := int64(1); number <= n; number += every {
			want = append(want, number)
		}
		if len(want) > MostBlocks || every > 1 && len(want) < MostBlocks/2 {
			t.Fatalf("%d blocks: %d are kept, of every %d", n, len(want), every)
		}
		if every&(every-1) != 0 {
			t.Fatalf("%d blocks: every %d is no power of 2", n, every)
		}
		if want[len(want)-1] != n {
			want = append(want, n)
		}
		var got []int64
		for _, b := range blocks {
			got = append(got, b.Number)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%d blocks: got numbers %v, want every %d and the latest", n, got, every)
		}
	}
}

// The slowest pairs are those that sorting all calm pairs gives. Void pairs and those that met a queue are not among them.
func TestHistoryOfPairs(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		var h History
		var excess [E2E + 1][]time.Duration
		var bad [2][]string
		for i := range random.IntN(300) {
			p := &Pair{ID: fmt.Sprint("0/", i), Void: late(random.IntN(9) == 0)}
			p.Calm = p.Void == NotVoid && random.IntN(5) > 0
			for side := range p.Requests {
				r := &p.Requests[side]
				if r.Bad = random.IntN(6) == 0; r.Bad {
					if p.Void == NotVoid {
						bad[side] = append(bad[side], p.ID)
					}
					continue
				}
				r.TTFT, r.TPOT, r.E2E = time.Duration(1+random.IntN(50)), time.Duration(random.IntN(3)), time.Duration(1+random.IntN(1e9))
			}
			for m := range excess {
				if base, cand := p.Requests[Baseline].Latency(Metric(m)), p.Requests[Candidate].Latency(Metric(m)); p.Calm && base > 0 && cand > base {
					excess[m] = append(excess[m], cand-base)
				}
			}
			h.Pair(p)
		}
		for m := range excess {
			slices.Sort(excess[m])
			slices.Reverse(excess[m])
			var got []time.Duration
			for _, p := range h.Slowest[m] {
				got = append(got, p.Requests[Candidate].Latency(Metric(m))-p.Requests[Baseline].Latency(Metric(m)))
			}
			if want := excess[m][:min(MostSlowest, len(excess[m]))]; !slices.Equal(got, want) {
				t.Fatalf("%v: got %v, want %v", Metric(m), got, want)
			}
		}
		for side := range bad {
			var got []string
			for _, p := range h.Bad[side] {
				got = append(got, p.ID)
			}
			if want := bad[side][:min(MostBad, len(bad[side]))]; !slices.Equal(got, want) {
				t.Fatalf("bad of %v: got %v, want the first %v", Side(side), got, want)
			}
		}
	}
}

// When a history is full, blocks and pairs take no more memory.
func TestHistoryIsBounded(t *testing.T) {
	var h History
	number, at := int64(0), time.Duration(0)
	more := func() {
		for range 5 * MostBlocks {
			number, at = number+1, at+1
			h.Block(Block{Number: number})
			h.Pair(&Pair{Calm: true, Requests: [2]Request{{TTFT: 1, TPOT: 1, E2E: 1, Bad: true}, {TTFT: 1 + at, TPOT: 1 + at, E2E: 1 + at, Bad: true}}})
		}
	}
	more()
	if n := testing.AllocsPerRun(20, more); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
	if n := cap(h.blocks); n > 2*MostBlocks {
		t.Errorf("room for %d blocks, want at most %d", n, 2*MostBlocks)
	}
}

// Each block is reported once, with its own values and the state after it: the latest is the state of the
// comparison, and the values give the same bits.
func TestEndedBlocks(t *testing.T) {
	s := newSource(5)
	s.form = func(p *Pair, rng *rand.Rand) {
		p.Requests[Candidate].lengthen(1.04)
		if side := rng.IntN(40); side < 2 {
			p.Requests[side] = Request{Sent: p.At, End: p.At.Add(time.Second), Bad: true}
		}
		p.Void = late(p.At.Unix()%7200 < 120 && rng.IntN(2) == 0) // in some blocks
	}
	c := New(Defaults())
	var blocks []Block
	c.Ended = func(b Block) { blocks = append(blocks, b) }
	for range 40_000 {
		c.Add(s.next())
	}
	j := c.Judge()
	var pairs Pairs
	var worse [metrics]int64
	skipped := map[Skip]int64{}
	for i, b := range blocks {
		if b.Number != int64(i+1) || i > 0 && !b.Begin.Equal(blocks[i-1].End) || b.End.Sub(b.Begin) < time.Minute {
			t.Fatalf("block %d: %+v", i, b)
		}
		pairs.Void += int64(b.Void)
		pairs.Judged += int64(b.Pairs - b.Void)
		if b.Skip != "" {
			skipped[b.Skip]++
		}
		for _, m := range Metrics {
			v := b.Value(m)
			if m.IsLatency() && math.IsNaN(v) != (b.Skip != "") {
				t.Fatalf("block %d, skipped %q: %v has %v", i, b.Skip, m, v)
			}
			if m.IsLatency() && v > 1.05 || m == Queued && v > 0.05 || m == Tail && v > 0 {
				worse[m]++
			}
		}
	}
	if open := j.Pairs.Judged + j.Pairs.Void - pairs.Judged - pairs.Void; len(blocks) < 500 || open < 0 || open > 200 {
		t.Errorf("%d blocks, which lack %d pairs", len(blocks), open)
	}
	if skipped[SkipVoid] == 0 || fmt.Sprint(skipped) != fmt.Sprint(j.Skipped) {
		t.Errorf("skipped: got %v, want %v", skipped, j.Skipped)
	}
	for _, m := range Metrics {
		after := blocks[len(blocks)-1].Metrics[m].After
		if fmt.Sprint(after) != fmt.Sprint(j.Metrics[m]) {
			t.Errorf("%v: got %+v, want %+v", m, after, j.Metrics[m])
		}
		if m != Bad && worse[m] != j.Metrics[m].Worse { // the blocks of bad are put together
			t.Errorf("%v: %d values are worse, want %d", m, worse[m], j.Metrics[m].Worse)
		}
	}
	c.Restart()
	before := len(blocks)
	for range 200 {
		c.Add(s.next())
	}
	if len(blocks) == before || blocks[before].Number != 1 {
		t.Errorf("after a restart: got %d more blocks, want them from number 1", len(blocks)-before)
	}
}
