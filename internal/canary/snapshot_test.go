package canary

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// again sends a snapshot through JSON.
func again(t *testing.T, s Snapshot) Snapshot {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) >= 96<<10 {
		t.Fatalf("a snapshot has %d bytes", len(text))
	}
	var r Snapshot
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// sized returns how many lives, rounds or days a test has: few with -short.
func sized[N int | uint64](whole, few N) N {
	if testing.Short() {
		return few
	}
	return whole
}

// In random lives of both modes, a comparison that goes on from a snapshot at the border of a block judges as one
// that never ended.
func TestRestoredJudgesTheSame(t *testing.T) {
	lives := sized(uint64(200), 12)
	restored, changes, fails := 0, 0, 0
	for seed := range lives {
		o := Defaults()
		if seed%2 == 1 {
			o.Mode = ModeWatch
		}
		s := newSource(seed)
		s.every = 2 * time.Second
		slower, bad, void := 0.0, 0.0, 0.0
		s.form = func(p *Pair, rng *rand.Rand) {
			p.Requests[Candidate].lengthen(1 + slower)
			p.Requests[Candidate].Bad = rng.Float64() < bad
			p.Void = late(rng.Float64() < void)
		}
		one, other := New(o), New(o)
		for n := range 8000 {
			if n%2000 == 0 {
				slower, bad, void = 0.3*s.rng.Float64()-0.1, 0.05*s.rng.Float64(), 0.15*s.rng.Float64()
			}
			if s.rng.IntN(4000) == 0 {
				one.RestartLatencies()
				other.RestartLatencies()
			}
			p := s.next()
			blocks := one.ended
			one.Add(p)
			other.Add(p)
			if one.ended == blocks || s.rng.IntN(20) > 0 {
				continue
			}
			// The pair that ended the block is in the open one, which the snapshot does not have.
			r, err := Restore(o, again(t, other.Snapshot()))
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			r.Add(p)
			other = r
			restored++
			if got, want := fmt.Sprintf("%+v", other.Judge()), fmt.Sprintf("%+v", one.Judge()); got != want {
				t.Fatalf("seed %d, pair %d: got\n%s\nwant\n%s", seed, n, got, want)
			}
		}
		j, want := other.Judge(), one.Judge()
		if got, want := fmt.Sprintf("%+v", j), fmt.Sprintf("%+v", want); got != want {
			t.Fatalf("seed %d: got\n%s\nwant\n%s", seed, got, want)
		}
		if j.Verdict == Fail {
			fails++
		}
		for m := range j.Watch {
			counts := other.watch.metrics[m].changed()
			changes += int(counts[Slower] + counts[Back] + counts[More])
			if want := one.watch.metrics[m].changed(); !maps.Equal(counts, want) {
				t.Fatalf("seed %d: changes: got %v, want %v", seed, counts, want)
			}
		}
	}
	if restored < 5*int(lives) || changes == 0 || fails == 0 {
		t.Errorf("%d restored, %d changes, %d fails", restored, changes, fails)
	}
}

// A comparison that has seen all values evenly, for decades, has the longest snapshot.
func TestLongestSnapshot(t *testing.T) {
	o := Defaults()
	c := New(o)
	each := int64(1 << 32 / (2*cells + 1) / 16)
	for m := range c.tests {
		test := &c.tests[m]
		n := each * (2*cells + 1)
		test.neighbors = neighbors{Values: n, Present: stretch{N: n % stretchBlocks, Sum: 1e-5 / 3.0, Squares: 1e-5 / 7.0, Products: -1e-5 / 7.0}}
		for range maxStretches {
			test.neighbors.Stretches = append(test.neighbors.Stretches, -0.1/math.Pi)
		}
		test.Worse = Restarts{Evidence: Evidence{test.neighbors.Values, test.neighbors.Values}, Count: 1 << 20, Past: -1 / 3.0}
		test.Better = Restarts{Evidence: Evidence{0, test.neighbors.Values}, Count: 1 << 20, Past: -1 / 3.0}
		if Metric(m).IsLatency() {
			for i := range test.ratio.counts {
				test.ratio.counts[i] = each
			}
			for i := range courseBlocks {
				test.course.add(2*cells, int64(i)<<31)
			}
			for i := range c.overall[m] {
				c.overall[m][i] = 1 << 36
			}
		}
		c.ended = test.neighbors.Values
	}
	for side := range c.tail.counts {
		for i := range c.tail.counts[side] {
			c.tail.counts[side][i] = 1 << 33
		}
	}
	a := &c.answers
	a.Known = int64(lengthCells) << 36
	a.Pairs = a.Known
	for i := range a.ratios {
		a.ratios[i] = a.Known / int64(len(a.ratios))
	}
	a.ratios[0] += a.Known % int64(len(a.ratios))
	for side := range a.lengths {
		for i := range a.lengths[side] {
			a.lengths[side][i] = 1 << 36
		}
		a.Tokens[side], a.Finishes[side][Stop], a.Only[side][Stop] = 1<<52, a.Pairs, a.Pairs
	}
	if _, err := Restore(o, again(t, c.Snapshot())); err != nil {
		t.Error(err)
	}
	o.Mode = ModeWatch
	b := newBlocks(5, o)
	for range 1000 {
		for _, m := range Metrics {
			if m.IsLatency() {
				b.latency(m, 0.1)
			} else {
				b.share(m, [2]float64{0.1, 0.2})
			}
		}
	}
	c = New(o)
	c.watch, c.ended = b.Watch, 6000
	if _, err := Restore(o, again(t, c.Snapshot())); err != nil {
		t.Error(err)
	}
}

// Sizes, indices and names from outside are checked, and the error names the field.
func TestRestoreFaults(t *testing.T) {
	snapshot := func(mode Mode) Snapshot {
		o := Defaults()
		o.Mode = mode
		s := newSource(4)
		s.form = func(p *Pair, rng *rand.Rand) {
			p.Requests[Candidate].lengthen(1.2)
			p.Requests[Candidate].Bad = rng.Float64() < 0.1
		}
		c := New(o)
		for range 5000 {
			c.Add(s.next())
		}
		return c.Snapshot()
	}
	verdict, watch := Defaults(), Defaults()
	watch.Mode = ModeWatch
	for _, c := range []struct {
		options Options
		spoil   func(s *Snapshot)
		want    string // of the error
	}{
		{verdict, func(s *Snapshot) { s.Options.Tolerance = 0.1 }, "options: want"},
		{verdict, func(s *Snapshot) { s.Tail = []byte{0xff} }, "tail: want counts of 1000 cells, got 1"},
		{verdict, func(s *Snapshot) { s.Answers.Ratios = []byte{0xff} }, "answers.ratios: want counts of"},
		{verdict, func(s *Snapshot) { s.Tests = s.Tests[:5] }, "tests: want 6, got 5"},
		{verdict, func(s *Snapshot) { s.Watch = make([]WatchedSnapshot, 1) }, "watch: want 0, got 1"},
		{verdict, func(s *Snapshot) { s.Failed = "luck" }, "failed: want a metric that was tested, got luck"},
		{verdict, func(s *Snapshot) { s.Tests[0].Cells = nil }, "tests[0].cells: want 83, got 0"},
		{verdict, func(s *Snapshot) { s.Tests[0].Lower = -2 }, "tests[0].lower: want -1 to 2400, got -2"},
		{verdict, func(s *Snapshot) { s.Tests[0].Upper = 2402 }, "tests[0].upper: want 0 to 2401, got 2402"},
		{watch, func(s *Snapshot) { s.Watch[0].Direction = More }, "watch[0].direction: want none, slower or faster, got more"},
		{watch, func(s *Snapshot) { s.Watch[0].Changes = nil }, "watch[0].changes: want 3, got 0"},
		{watch, func(s *Snapshot) { s.Watch[3].Up = s.Watch[3].Up[:3] }, "watch[3].up: want 4, got 3"},
		{watch, func(s *Snapshot) { s.Watch[1].Values = append(s.Watch[1].Values, 0) }, "watch[1].values, tallies: want 60, got 61"},
		{
			watch, func(s *Snapshot) { s.Watch[1].Neighbors.Stretches = make([]float64, 11) },
			"watch[1].neighbours.stretches: want at most 10, got 11",
		},
	} {
		s := snapshot(c.options.Mode)
		if _, err := Restore(c.options, s); err != nil {
			t.Fatalf("before the fault: %v", err)
		}
		c.spoil(&s)
		_, err := Restore(c.options, s)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v, want %s…", err, c.want)
		}
	}
}

// Whatever a file holds, it is refused, or is a comparison that goes on and that a snapshot of its own restores.
func FuzzRestore(f *testing.F) {
	verdict, watch := Defaults(), Defaults()
	watch.Mode = ModeWatch
	for _, o := range []Options{verdict, watch} {
		for _, factor := range []float64{1, 1.2} {
			c, s := New(o), newSource(8)
			s.form = func(p *Pair, _ *rand.Rand) { p.Requests[Candidate].lengthen(factor) }
			for range 3000 {
				c.Add(s.next())
			}
			text, err := json.Marshal(c.Snapshot())
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s Snapshot
		if json.Unmarshal(text, &s) != nil {
			return
		}
		if s.Options.Check() != nil {
			return
		}
		c, err := Restore(s.Options, s)
		if err != nil {
			return
		}
		j := c.Judge()
		r, err := Restore(s.Options, c.Snapshot())
		if err != nil {
			t.Fatalf("a restored comparison cannot be restored: %v", err)
		}
		if got, want := fmt.Sprintf("%+v", r.Judge()), fmt.Sprintf("%+v", j); got != want {
			t.Fatalf("restored twice: got\n%s\nwant\n%s", got, want)
		}
		from := newSource(1)
		from.at = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		for range 200 {
			c.Add(from.next())
		}
		after := c.Judge()
		if after.Pairs.Judged != j.Pairs.Judged+200 || c.counters.Totals().Pairs.Judged != 200 {
			t.Fatalf("200 pairs more than %+v are %+v", j.Pairs, after.Pairs)
		}
	})
}
