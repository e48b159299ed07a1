package canary

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// Where void pairs keep blocks from having latencies, the comparison says so, with their share, the most frequent reason and what to do, in both modes: also
// where all pairs are void, so that no block ends. A few of them are no reason.
func TestTooManyVoidPairs(t *testing.T) {
	for _, c := range []struct {
		name  string
		share float64
		why   Void
		want  string
	}{
		{"a third", 1. / 3, VoidLate, "void: 3# % of the pairs are void, mostly because replayd sent them late: give it more CPU, or lower the load (speed)"},
		{"all", 1, VoidOneSide, "void: 100 % of the pairs are void, mostly because they came due on one side alone"},
		{"a few", 0.05, VoidLate, ""},
	} {
		for _, mode := range []Mode{ModeVerdict, ModeWatch} {
			s := newSource(5)
			s.form = func(p *Pair, rng *rand.Rand) {
				if rng.Float64() < c.share {
					p.Void = c.why
				} else if rng.Float64() < 0.001 {
					p.Void = VoidPaused
				}
			}
			o := Defaults()
			o.Mode = mode
			one := New(o)
			for range 600 {
				one.Add(s.next())
			}
			j := one.Judge()
			text := j.Text(o)
			if got := j.Reason == TooVoid; got != (c.want != "") {
				t.Errorf("%s, %s: the reason is %q: %s", mode, c.name, j.Reason, text)
			}
			begin, end, _ := strings.Cut(strings.TrimPrefix(c.want, "void: "), "#")
			if !strings.Contains(text, begin) || !strings.Contains(text, end) {
				t.Errorf("%s, %s: got %q, want %q", mode, c.name, text, c.want)
			}
		}
	}
}

// A block or two without latencies after a verdict's worth of good ones do not take the reason over.
func TestVoidForAWhile(t *testing.T) {
	s, n := newSource(5), 0
	s.form = func(p *Pair, _ *rand.Rand) {
		p.Requests[Candidate].lengthen(1.05)
		if n++; n > 600 && n < 700 {
			p.Void = VoidPaused
		}
	}
	c := New(Defaults())
	for range 720 {
		c.Add(s.next())
		if j := c.Judge(); j.Reason == TooVoid {
			t.Fatalf("after %d pairs: %s", n, j.Text(Defaults()))
		}
	}
}

// The warm-up's pairs are void by intention. They do not keep a block from having latencies, however many they are. More
// than a tenth of the other pairs does.
func TestWarmUpIsNoVoid(t *testing.T) {
	for late, want := range map[int64]bool{0: false, 2: false, 3: true} {
		var b block
		b.Judged, b.Void = 20-late, 60+late
		b.Voids[VoidWarmUp], b.Voids[VoidLate] = 60, late
		if b.isVoid() != want {
			t.Errorf("%d late pairs of 20 beside 60 of the warm-up: want void %v", late, want)
		}
	}
}

// Counts by reason keep their names in JSON. Reasons of another version are left out.
func TestVoidCounts(t *testing.T) {
	var c VoidCounts
	c[VoidLate], c[VoidApart] = 90, 4
	if got, want := c.Text(), "late 90, apart 4"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	text, err := json.Marshal(c)
	if want := `{"apart":4,"late":90}`; err != nil || string(text) != want {
		t.Errorf("got %s, %v; want %s", text, err, want)
	}
	var again VoidCounts
	if err := json.Unmarshal([]byte(`{"apart":4,"late":90,"moonshine":7}`), &again); err != nil || again != c {
		t.Errorf("got %v, %v; want %v", again, err, c)
	}
}
