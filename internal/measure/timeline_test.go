package measure

import (
	"slices"
	"testing"
	"time"
)

// One request in hand arithmetic: due at 0, held back by its session until 700 ms, taken by a lane at 900 ms, written at
// 1,000 ms, three chunks 200, 250 and 500 ms later, which hold 7 tokens.
func TestTimelineArithmetic(t *testing.T) {
	r := &Request{
		Timeline: Timeline{
			Planned: start, Due: start, Ready: start.Add(700 * ms), Lane: start.Add(900 * ms), Waited: true,
			Write: start.Add(1000 * ms), End: start.Add(1600 * ms), Chunks: []time.Duration{200 * ms, 250 * ms, 500 * ms},
		},
		Usage: Usage{Output: 7},
	}
	f := func(name string, got, want time.Duration) {
		t.Helper()
		if got != want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	defined := func(d time.Duration, ok bool) time.Duration {
		if !ok {
			return -1
		}
		return d
	}
	f("TTFT", defined(r.TTFT()), 200*ms)
	f("TTFT from due", defined(r.TTFTFromDue()), 1200*ms)
	f("e2e", defined(r.E2E()), 500*ms)
	f("e2e from due", defined(r.E2EFromDue()), 1500*ms)
	f("TPOT", defined(r.TPOT()), 50*ms) // (500 − 200) / (7 − 1)
	f("lateness", r.Lateness(), 300*ms)
	f("lane wait", r.LaneWait(), 200*ms)
	f("session wait", r.SessionWait(), 700*ms)
	if got, want := slices.Collect(r.ITL()), []time.Duration{50 * ms, 250 * ms}; !slices.Equal(got, want) {
		t.Errorf("ITL = %v, want %v", got, want)
	}
	for gap := range r.ITL() {
		f("the first gap alone", gap, 50*ms)
		break
	}

	r.Timeline.Waited = false // a lane was free: what came after Ready was not a wait for one
	f("lane wait with a free lane", r.LaneWait(), 0)
}

func TestNothingIsNegative(t *testing.T) {
	r := &Request{Timeline: Timeline{
		Due: start, Ready: start.Add(-ms), Lane: start.Add(-2 * ms), Waited: true, Write: start.Add(-3 * ms),
	}}
	for name, d := range map[string]time.Duration{"lateness": r.Lateness(), "lane wait": r.LaneWait(), "session wait": r.SessionWait()} {
		if d != 0 {
			t.Errorf("%s = %v, want 0", name, d)
		}
	}
}

func TestUndefinedLatencies(t *testing.T) {
	f := func(name string, tokens int, chunks []time.Duration, wantTTFT, wantTPOT bool, wantGaps int) {
		t.Helper()
		r := &Request{Timeline: Timeline{Chunks: chunks}, Usage: Usage{Output: tokens}}
		for what, get := range map[string]func() (time.Duration, bool){"TTFT": r.TTFT, "TTFT from due": r.TTFTFromDue, "e2e": r.E2E, "e2e from due": r.E2EFromDue} {
			if _, got := get(); got != wantTTFT {
				t.Errorf("%s: %s defined: %v, want %v", name, what, got, wantTTFT)
			}
		}
		if _, got := r.TPOT(); got != wantTPOT {
			t.Errorf("%s: TPOT defined: %v, want %v", name, got, wantTPOT)
		}
		if got := len(slices.Collect(r.ITL())); got != wantGaps {
			t.Errorf("%s: %d gaps, want %d", name, got, wantGaps)
		}
	}
	f("no content", 0, nil, false, false, 0)
	f("one token", 1, []time.Duration{ms}, true, false, 0)
	f("several tokens in one chunk", 5, []time.Duration{ms}, true, false, 0)
	f("one token in two chunks", 1, []time.Duration{ms, 2 * ms}, true, false, 1)
	f("two tokens", 2, []time.Duration{ms, 2 * ms}, true, true, 1)
}

// An answer in one piece has an end and no first token, however many tokens it has.
func TestWholeAnswerHasNoFirstToken(t *testing.T) {
	r := &Request{Usage: Usage{Output: 500}, Timeline: Timeline{Due: start, Write: start.Add(ms), Chunks: []time.Duration{700 * ms}, Whole: true}}
	for name, get := range map[string]func() (time.Duration, bool){"TTFT": r.TTFT, "TTFT from due": r.TTFTFromDue, "TPOT": r.TPOT} {
		if d, defined := get(); defined || d != 0 {
			t.Errorf("%s: want it undefined, got %v", name, d)
		}
	}
	if gaps := slices.Collect(r.ITL()); len(gaps) != 0 {
		t.Errorf("ITL: want none, got %v", gaps)
	}
	if d, defined := r.E2E(); !defined || d != 700*ms {
		t.Errorf("e2e: want 700ms, got %v, %v", d, defined)
	}
	if d, defined := r.E2EFromDue(); !defined || d != 701*ms {
		t.Errorf("e2e from due: want 701ms, got %v, %v", d, defined)
	}
}
