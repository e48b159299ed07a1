package canary

import (
	"encoding/json"
	"fmt"
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
	if len(text) >= 64<<10 {
		t.Fatalf("a snapshot has %d bytes", len(text))
	}
	var r Snapshot
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// In random lives of both modes, a comparison that goes on from a snapshot at the border of a block judges as one that never ended.
func TestRestoredJudgesTheSame(t *testing.T) {
	lives := uint64(200)
	if testing.Short() {
		lives = 40
	}
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
			p.Void = rng.Float64() < void
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
		for _, w := range j.Watch {
			changes += int(w.Changes[Slower] + w.Changes[Back] + w.Changes[More])
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
	each := int64(mostBlocks / (2*cells + 1) / 16)
	for m := range c.tests {
		test := &c.tests[m]
		n := each * (2*cells + 1)
		test.neighbours = neighbours{Values: n, Present: stretch{N: n % stretchBlocks, Sum: 1e-5 / 3.0, Squares: 1e-5 / 7.0, Products: -1e-5 / 7.0}}
		for range mostStretches {
			test.neighbours.Stretches = append(test.neighbours.Stretches, -0.1/math.Pi)
		}
		test.worse, test.better = Evidence{test.neighbours.Values, test.neighbours.Values}, Evidence{0, test.neighbours.Values}
		if Metric(m).IsLatency() {
			for i := range test.ratio.counts {
				test.ratio.counts[i] = each
			}
		}
		c.ended = test.neighbours.Values
	}
	for i := range c.tail.counts {
		c.tail.counts[i] = 1 << 33
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

// Every number from outside is checked, and the error names its field.
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
		{verdict, func(s *Snapshot) { s.Pairs.Judged = -1 }, "pairs.judged: want 0 to 4503599627370496, got -1"},
		{verdict, func(s *Snapshot) { s.Blocks = 1 << 40 }, "blocks: want 0 to 4294967296, got 1099511627776"},
		{verdict, func(s *Snapshot) { s.Lasted = -1 }, "lasted_ns: want 0 or more, got -1"},
		{verdict, func(s *Snapshot) { s.Skipped = map[Skip]int64{"luck": 1} }, "skipped: want known reasons, got luck"},
		{verdict, func(s *Snapshot) { s.Tail = []byte{0xff} }, "tail: want counts of 500 cells, got 1"},
		{verdict, func(s *Snapshot) { s.Tests = s.Tests[:5] }, "tests: want 6, got 5"},
		{verdict, func(s *Snapshot) { s.Watch = make([]WatchedSnapshot, 1) }, "watch: want 0, got 1"},
		{verdict, func(s *Snapshot) { s.Failed = "luck" }, "failed: want a metric that was tested, got luck"},
		{verdict, func(s *Snapshot) { s.Totals.Metrics = nil }, "totals.metrics: want 6, got 0"},
		{verdict, func(s *Snapshot) { s.Totals.Metrics[1].Changes = map[Direction]int64{More: 1} }, "totals.metrics.changes: want [slower faster back], got more"},
		{verdict, func(s *Snapshot) { s.Totals.Pairs.Void = -5 }, "totals.pairs.void: want"},
		{verdict, func(s *Snapshot) { s.Tests[0].Metric = "e2e" }, "tests[0].metric: want ttft, got e2e"},
		{verdict, func(s *Snapshot) { s.Tests[2].Above = s.Blocks + 1 }, "tests[2].above: want 0 to 83, got 84"},
		{verdict, func(s *Snapshot) { s.Tests[2].Below = s.Tests[2].Above }, "tests[2].above, at and below: want 0 to 83, got"},
		{verdict, func(s *Snapshot) { s.Tests[1].Neighbours.Present.Last = math.Inf(1) }, "tests[1].neighbours.last: want a number from"},
		{verdict, func(s *Snapshot) { s.Tests[1].Neighbours.Present.Squares = math.NaN() }, "tests[1].neighbours.squares: want a number from"},
		{verdict, func(s *Snapshot) { s.Tests[0].Cells = nil }, "tests[0].cells: want 83, got 0"},
		{verdict, func(s *Snapshot) { s.Tests[0].Lower = -2 }, "tests[0].lower: want -1 to 2400, got -2"},
		{verdict, func(s *Snapshot) { s.Tests[0].Upper = 2402 }, "tests[0].upper: want 0 to 2401, got 2402"},
		{verdict, func(s *Snapshot) { s.Tests[5].All.Candidate = s.Tests[5].All.Pairs + 1 }, "tests[5].all.candidate: want 0 to"},
		{verdict, func(s *Snapshot) { s.Tests[5].Passed = true }, "tests[5].passed, cells: want none"},
		{watch, func(s *Snapshot) { s.Watch[0].Direction = More }, "watch[0].direction: want none, slower or faster, got more"},
		{watch, func(s *Snapshot) { s.Watch[0].Direction = "" }, "watch[0].changes: want 0 that is not back, got [1 0 0]"},
		{watch, func(s *Snapshot) { s.Watch[0].Changes = nil }, "watch[0].changes: want 3, got 0"},
		{watch, func(s *Snapshot) { s.Watch[0].Found = s.Watch[0].Since.Add(-1) }, "watch[0].found: want an instant after"},
		{watch, func(s *Snapshot) { s.Watch[3].Up = s.Watch[3].Up[:3] }, "watch[3].up: want 4, got 3"},
		{watch, func(s *Snapshot) { s.Watch[3].Up[0].Sum = 1e300 }, "watch[3].up: want a mean below 518400, got"},
		{watch, func(s *Snapshot) { s.Watch[3].Down[2].Recent = -1 }, "watch[3].down.recent: want a number from 0 to"},
		{watch, func(s *Snapshot) { s.Watch[5].Back[1].Since.Candidate = -1 }, "watch[5].back.since.candidate: want 0 to"},
		{watch, func(s *Snapshot) { s.Watch[5].Open.Pairs = 1 << 30 }, "watch[5].open.pairs: want fewer"},
		{watch, func(s *Snapshot) { s.Watch[1].Values = append(s.Watch[1].Values, 0) }, "watch[1].values, tallies: want 60, got 61"},
		{watch, func(s *Snapshot) { s.Watch[1].Values[7] = math.NaN() }, "watch[1].values: want a number from -50 to 50, got NaN"},
		{watch, func(s *Snapshot) { s.Watch[4].Tallies[0].Baseline = -1 }, "watch[4].tallies.baseline: want 0 to"},
		{watch, func(s *Snapshot) { s.Watch[1].Neighbours.Stretches = nil }, "watch[1].neighbours.stretches: want 1, got 0"},
		{watch, func(s *Snapshot) { s.Watch[1].Neighbours.Stretches[0] = 3 }, "watch[1].neighbours.stretches: want a number from -2 to 2, got 3"},
		{watch, func(s *Snapshot) { s.Watch[1].Neighbours.Present.N = 50 }, "watch[1].neighbours.present.n: want 33, got 50"},
		{watch, func(s *Snapshot) { s.Watch[1].Neighbours.Present.Squares = -1 }, "watch[1].neighbours.squares: want a number from"},
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
		if after.Pairs.Judged != j.Pairs.Judged+200 || after.Totals.Pairs.Judged != j.Totals.Pairs.Judged+200 {
			t.Fatalf("200 pairs more than %+v are %+v", j.Pairs, after.Pairs)
		}
	})
}
