package canary

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// played returns a comparison with so many pairs, a time apart.
func played(o Options, pairs int, every time.Duration, form func(p *Pair, rng *rand.Rand)) *Comparison {
	s := newSource(5)
	s.every, s.form = every, form
	c := New(o)
	for range pairs {
		c.Add(s.next())
	}
	return c
}

// A pass says of which requests it speaks and on what condition, and which metrics have no value, because it does not cover them.
func TestPassText(t *testing.T) {
	faster := func(p *Pair, _ *rand.Rand) { p.Requests[Candidate].lengthen(0.8) }
	o := Defaults()
	for name, c := range map[string]struct {
		form   func(p *Pair, rng *rand.Rand)
		wander float64
		want   string
	}{
		"streamed": {
			faster, 0, "pass: in these 166 minutes, no latency of the candidate is longer by more than 5 %, in the median block of requests that met no queue (100 % of them)" +
				"; of all answered pairs: ttft × 0.80, tpot × 0.79, e2e × 0.79, and no share of its requests exceeds the baseline's by more than its tolerance; this is wrong in at most 1 % of such " +
				"comparisons, if two equal servers differ by nothing that lasts longer than a block (wander 0). One pair of servers: it says nothing about a version",
		},
		"wander": {
			faster, 0.02, "pass: in these 166 minutes, no latency of the candidate is longer by more than 5 %, in the median block of requests that met no queue (100 % of them)" +
				"; of all answered pairs: ttft × 0.80, tpot × 0.79, e2e × 0.79, and no share of its requests exceeds the baseline's by more than its tolerance; this is wrong in at most 1 % of such " +
				"comparisons, if the ratio of two equal servers wanders by 2 % at most, and nothing else differs that lasts longer than a block (tail, bad: than ten). One pair of servers: it says nothing about a version",
		},
		"not streamed": {
			func(p *Pair, _ *rand.Rand) {
				for side := range p.Requests {
					p.Requests[side].TTFT, p.Requests[side].TPOT, p.Requests[side].First = 0, 0, time.Time{}
				}
			}, 0, "(wander 0); not judged, without a value so far: ttft, tpot. One pair of servers: it says nothing about a version",
		},
	} {
		o.Wander = c.wander
		j := played(o, 5000, 2*time.Second, c.form).Judge()
		if text := j.Text(o); j.Verdict != Pass || !strings.HasSuffix(text, c.want) {
			t.Errorf("%s: got\n%s\nwant a pass that ends with\n%s", name, text, c.want)
		}
	}
}

// Of a ratio beyond the cells of its interval only a bound is known, which is shown as such.
func TestRatioBeyondTheCells(t *testing.T) {
	for _, c := range []struct {
		factor, tolerance float64
		want              string
	}{
		{50, 0.05, "more than 20"},
		{400, 0.05, "more than 20"},
		{20.5, 0.05, "20."},
		{0.02, 0.05, "less than 0.06"},
		{0.055, 0.05, "0.05"},
		{0.02, 0, "less than 0.05"},
		{400, 1, "more than 40"},
		{400, 10, "more than 200"},
		{0.1, 10, "less than 0.6"},
	} {
		o := Defaults()
		o.Tolerance = c.tolerance
		j := played(o, 400, 10*time.Minute, func(p *Pair, _ *rand.Rand) { p.Requests[Candidate].lengthen(c.factor) }).Judge()
		s := j.Metrics[E2E]
		if got := s.RatioText(); !strings.HasPrefix(got, c.want) {
			t.Errorf("× %v with a tolerance of %v: got %q, want %q", c.factor, c.tolerance, got, c.want)
		}
		if s.Lower > s.Ratio || s.Upper < s.Ratio {
			t.Errorf("× %v with a tolerance of %v: %v is not in %v to %v", c.factor, c.tolerance, s.Ratio, s.Lower, s.Upper)
		}
	}
}

// A share of requests beyond its tolerance is shown with its sense, and beside a change that is proven.
func TestWatchSaysMoreAndFewer(t *testing.T) {
	o := Defaults()
	j := Judgment{Watch: make([]WatchState, len(Metrics))}
	for m := range j.Watch {
		j.Watch[m] = WatchState{Metric: Metric(m), Blocks: 9, Ratio: 1}
	}
	j.Watch[Bad].Excess, j.Watch[Queued].Excess, j.Watch[Queued].Dependent = 0.02, -0.06, true
	want := "no change proven: 6 % fewer requests of the candidate are queued (blocks too much alike); " +
		"2 % more requests of the candidate are bad (failed or beyond the SLO): beyond the tolerance, but not proven yet; at most one false alarm in 30 days on average, " +
		"if two equal servers differ by nothing that lasts longer than a block (wander 0)"
	if got := j.Text(o); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	j.Watch[E2E].Direction = Slower
	if got := j.Text(o); !strings.HasPrefix(got, "changed: e2e of the candidate is slower since ") || !strings.Contains(got, "; beyond the tolerance, but not proven yet: 6 % fewer") {
		t.Errorf("got %q", got)
	}
}

// A watch without a proven change does not say that nothing has changed: it names what is beyond its tolerance.
func TestWatchSaysWhatIsNotProven(t *testing.T) {
	o := Defaults()
	o.Mode, o.Tolerance, o.ToleranceTail = ModeWatch, 0.2, 0.1
	for name, c := range map[string]struct {
		pairs  int
		factor float64
		want   string
	}{
		"no block": {10, 1, "no data yet: no block has latencies yet; one takes 1m0s and 20 pairs without a queue, or more"},
		"equal":    {400, 1, "no change proven: no metric is beyond its tolerance; at most one false alarm in 30 days on average"},
		"slower":   {400, 1.6, "no change proven: ttft of the candidate is 1.6"},
		"faster":   {400, 0.5, "no change proven: ttft of the candidate is 0.4"},
	} {
		j := played(o, c.pairs, 3*time.Second, func(p *Pair, _ *rand.Rand) { p.Requests[Candidate].lengthen(c.factor) }).Judge()
		if text := j.Text(o); !strings.HasPrefix(text, c.want) {
			t.Errorf("%s: got %q, want %q", name, text, c.want)
		}
	}
}
