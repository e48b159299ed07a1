package canary

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// least is the fewest bits after which a detector of a watch can alarm: all are ones.
func least(bound float64) int {
	d := &Detector{bound: bound}
	for n := 1; ; n++ {
		if _, alarm := d.Add(true, Span{}); alarm {
			return n
		}
	}
}

// blocks gives a watch blocks of a minute each.
type blocks struct {
	*Watch
	rng *rand.Rand
	at  time.Time
}

func newBlocks(seed uint64, o Options) *blocks {
	return &blocks{NewWatch(o), rand.New(rand.NewPCG(seed, 3)), time.Unix(0, 0).UTC()}
}

// latency adds a value with a noise of 2 %.
func (b *blocks) latency(m Metric, middle float64) Direction {
	b.at = b.at.Add(time.Minute)
	return b.Latency(m, middle+0.02*b.rng.NormFloat64(), b.at.Add(-time.Minute), b.at)
}

// share adds a block of 30 pairs with chances of both sides.
func (b *blocks) share(m Metric, chances [2]float64) Direction {
	b.at = b.at.Add(time.Minute)
	counts := [2]int{}
	for side := range counts {
		for range 30 {
			if b.rng.Float64() < chances[side] {
				counts[side]++
			}
		}
	}
	return b.Share(m, counts, 30, b.at.Add(-time.Minute), b.at)
}

// changed returns how often the metric has changed, by direction.
func (w *watched) changed() map[Direction]int64 {
	counts := map[Direction]int64{}
	for i, d := range w.metric.Directions() {
		counts[d] = w.changes[i]
	}
	return counts
}

// In thousands of lives with random changes: after a change comes its way back and nothing else, no state begins before the one before it was found, and
// no alarm comes after fewer bits than it needs.
func TestWatchLives(t *testing.T) {
	lives := sized(uint64(3000), 300)
	found := map[Direction]int{}
	for seed := range lives {
		o := Defaults()
		o.Mode, o.MinTime = ModeWatch, time.Minute
		b := newBlocks(seed, o)
		m := Metrics[seed%uint64(metrics)]
		fewest := least(WatchBound(2*int(metrics), o.MinTime))
		changes := map[Direction]int64{}
		before, bits := b.States()[m], 0
		for range 5 {
			middle, chances := 0.2*b.rng.Float64()-0.1, [2]float64{0.1 * b.rng.Float64(), 0.1 * b.rng.Float64()}
			for range 1 + b.rng.IntN(200) {
				change := Direction("")
				if m.IsLatency() {
					change = b.latency(m, middle)
				} else {
					change = b.share(m, chances)
				}
				bits++
				s := b.States()[m]
				if change == "" {
					if s.Direction != before.Direction || !s.Since.Equal(before.Since) || !s.Found.Equal(before.Found) {
						t.Fatalf("seed %d: %+v became %+v without a change", seed, before, s)
					}
					continue
				}
				changes[change]++
				found[change]++
				want := change
				if change == Back {
					want = ""
				}
				switch {
				case (change == Back) != (before.Direction != ""), s.Direction != want:
					t.Fatalf("seed %d: %q after %q is %q", seed, change, before.Direction, s.Direction)
				case s.Since.After(s.Found), !s.Found.Equal(b.at), s.Since.Before(before.Found):
					t.Fatalf("seed %d: %q from %v, found %v; the one before was found %v", seed, change, s.Since, s.Found, before.Found)
				case bits < fewest:
					t.Fatalf("seed %d: %q after %d bits, want at least %d", seed, change, bits, fewest)
				case b.metrics[m].changed()[change] != changes[change]:
					t.Fatalf("seed %d: %v changes, want %v", seed, b.metrics[m].changed(), changes)
				}
				before, bits = s, 0
			}
		}
	}
	for _, d := range []Direction{Slower, Faster, More, Fewer, Back} {
		if found[d] < 10 {
			t.Errorf("%q was found %d times", d, found[d])
		}
	}
}

// A latency that is 10 % longer after a month, or three times as long, and a share that grows by 15 %, are found within an hour, and the way back
// within hours. The begin is named to within minutes. The blocks of the change are no sign that blocks depend on each other.
func TestWatchFindsAChange(t *testing.T) {
	for n := range 2 * metrics {
		m, slower := n%metrics, []float64{1.1, 3}[n/metrics]
		o := Defaults()
		o.Mode = ModeWatch
		b := newBlocks(uint64(m), o)
		equal := func() Direction {
			if m.IsLatency() {
				return b.latency(m, 0)
			}
			return b.share(m, [2]float64{0.003, 0.003})
		}
		worse := func() Direction {
			if m.IsLatency() {
				return b.latency(m, math.Log(slower))
			}
			return b.share(m, [2]float64{0.003, 0.15})
		}
		for n := range 30 * 24 * 60 {
			if d := equal(); d != "" {
				t.Fatalf("%v: an equal server is %q in minute %d", m, d, n)
			}
		}
		for _, part := range []struct {
			next func() Direction
			want Direction
		}{{worse, m.Directions()[0]}, {equal, Back}} {
			from := b.at
			got := Direction("")
			for n := 0; got == "" && n < 600; n++ {
				got = part.next()
			}
			s := b.States()[m]
			limit := time.Hour
			if got == Back && !m.IsLatency() {
				limit = 6 * time.Hour // of bad, a bit takes 200 pairs
			}
			if got != part.want || s.Found.Sub(from) > limit || s.Since.Sub(from).Abs() > 30*time.Minute {
				t.Errorf("%v: got %q from %v, found %v; want %q from %v", m, got, s.Since, s.Found, part.want, from)
			}
		}
	}
}

// Values in between the bounds, exactly at one of them, equal counts, or no values at all, are no change, in a million blocks and in constant memory.
func TestWatchStaysNormal(t *testing.T) {
	rounds := sized(1_000_000, 20_000)
	o := Defaults()
	o.Mode = ModeWatch
	w := NewWatch(o)
	at := time.Unix(0, 0)
	bound := math.Log1p(o.Tolerance)
	changed := 0
	add := func(rounds int) {
		for n := range rounds {
			value := []float64{bound, -bound, 0, math.NaN(), bound / 2}[n%5]
			for _, m := range Metrics[:E2E+1] {
				if w.Latency(m, value, at, at.Add(time.Minute)) != "" {
					changed++
				}
			}
			for _, m := range Metrics[Tail:] {
				if w.Share(m, [2]int{n % 3, n % 3}, 20, at, at.Add(time.Minute)) != "" {
					changed++
				}
			}
			at = at.Add(time.Minute)
		}
	}
	add(maxStretches * stretchBlocks) // its memory is full then
	bytes := allocated(func() { add(rounds) })
	if changed > 0 || bytes > maxAllocated {
		t.Errorf("%d changes, %d bytes allocated, want none and at most %d", changed, bytes, maxAllocated)
	}
	for _, s := range w.States() {
		if s.Blocks != recentBlocks || s.Dependent || s.Metric.IsLatency() && s.Ratio < 0.95 {
			t.Errorf("%+v", s)
		}
		for _, p := range s.Progress {
			if math.IsNaN(p.Log10) || p.Log10 < 0 || p.Log10 > s.BoundLog10 {
				t.Errorf("%v: %+v of %v", s.Metric, p, s.BoundLog10)
			}
		}
	}
}

// A share below its tolerance is no change, however certain it is.
func TestWatchTolerates(t *testing.T) {
	o := Defaults()
	o.Mode, o.ToleranceQueued = ModeWatch, 0.2
	b := newBlocks(1, o)
	for range 10_000 {
		if d := b.share(Queued, [2]float64{0.1, 0.2}); d != "" {
			t.Fatalf("%q at half the tolerance", d)
		}
	}
	for n := 0; ; n++ {
		if d := b.share(Queued, [2]float64{0.1, 0.4}); d == More {
			break
		} else if n > 100 {
			t.Fatalf("after %d blocks of an excess of 30 %%: %q", n, d)
		}
	}
}

// Blocks that depend on each other withhold alarms, and say so.
func TestWatchWithholds(t *testing.T) {
	o := Defaults()
	o.Mode = ModeWatch
	b := newBlocks(2, o)
	value, dependent := 0.0, 0
	for n := range 3000 {
		value = 0.6*value + 0.02*b.rng.NormFloat64()
		if d := b.Latency(TTFT, 0.1+value, b.at, b.at); d != "" && n >= dependLeast*stretchBlocks {
			t.Fatalf("block %d: %q", n, d)
		}
		if b.States()[TTFT].Dependent {
			dependent++
		}
	}
	if dependent < 2500 {
		t.Errorf("dependent after %d of 3,000 blocks", dependent)
	}
}

// The program's way from pairs: a server that is equal for a month, and then 10 % slower. Its bits never say faster.
func TestWatchMode(t *testing.T) {
	days := sized(30, 2)
	o := Defaults()
	o.Mode = ModeWatch
	s := newSource(11)
	s.every = 3 * time.Second
	c := New(o)
	for range days * 24 * 1200 {
		c.Add(s.next())
	}
	j, totals := c.Judge(), c.counters.Totals()
	for _, w := range j.Watch {
		if w.Direction != "" || totals.Metrics[w.Metric].Changes[w.Metric.Directions()[1]] != 0 {
			t.Errorf("equal servers: %+v", w)
		}
	}
	s.form = func(p *Pair, _ *rand.Rand) { p.Requests[Candidate].lengthen(1.1) }
	from := s.at
	for range 1200 {
		c.Add(s.next())
	}
	j, totals = c.Judge(), c.counters.Totals()
	for _, w := range j.Watch[:E2E+1] {
		if w.Direction != Slower || w.Since.Sub(from).Abs() > 10*time.Minute || math.Abs(w.Ratio-1.1) > 0.02 || totals.Metrics[w.Metric].Changes[Slower] != 1 {
			t.Errorf("10 %% slower: %+v", w)
		}
	}
	if j.Verdict != "" || j.Reason != "" {
		t.Errorf("a watch has the verdict %q, %q", j.Verdict, j.Reason)
	}
}
