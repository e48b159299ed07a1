package measure

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

const milli = time.Millisecond

// begin is the due time of the requests under test.
var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// answered returns a request that was sent on time, with chunks at the given times after the write.
func answered(o Outcome, chunks ...time.Duration) *Request {
	r := &Request{Outcome: o, Timeline: Timeline{Planned: begin, Due: begin, Ready: begin, Lane: begin, Write: begin, End: begin, Chunks: chunks, Kernel: true}}
	if n := len(chunks); n > 0 {
		r.Timeline.End = begin.Add(chunks[n-1])
		r.Usage = Usage{Prompt: 100, Output: n, Source: UsageFinal}
	}
	return r
}

// One request, calculated by hand: due at 0, blocked by its session until 700 ms, taken by a lane at 900 ms, written at
// 1,000 ms. Three chunks with 7 tokens follow 200, 250 and 500 ms after the write.
func TestTimelineArithmetic(t *testing.T) {
	r := &Request{
		Timeline: Timeline{
			Planned: begin, Due: begin, Ready: begin.Add(700 * milli), Lane: begin.Add(900 * milli), Waited: true,
			Write: begin.Add(1000 * milli), End: begin.Add(1600 * milli), Chunks: []time.Duration{200 * milli, 250 * milli, 500 * milli},
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
	f("TTFT", defined(r.TTFT()), 200*milli)
	f("TTFT from due", defined(r.TTFTFromDue()), 1200*milli)
	for reasoning, want := range []time.Duration{200 * milli, 250 * milli, 500 * milli, -1} {
		r.Timeline.ReasoningChunks = reasoning
		f(fmt.Sprint("TTFAT after reasoning in chunks: ", reasoning), defined(r.TTFAT()), want)
	}
	f("e2e", defined(r.E2E()), 500*milli)
	f("e2e from due", defined(r.E2EFromDue()), 1500*milli)
	f("TPOT", defined(r.TPOT()), 50*milli) // (500 − 200) / (7 − 1)
	f("lateness", r.Lateness(), 300*milli)
	f("lane wait", r.LaneWait(), 200*milli)
	f("session wait", r.SessionWait(), 700*milli)
	r.Timeline.Connect = 40 * milli
	f("lateness without the connect", r.Lateness(), 260*milli)
	r.Timeline.Connect = 0
	if got, want := slices.Collect(r.ITL()), []time.Duration{50 * milli, 250 * milli}; !slices.Equal(got, want) {
		t.Errorf("ITL = %v, want %v", got, want)
	}
	for gap := range r.ITL() {
		f("the first gap alone", gap, 50*milli)
		break
	}

	r.Timeline.Waited = false // a lane was free: the time after Ready is no lane wait
	f("lane wait with a free lane", r.LaneWait(), 0)
}

func TestNothingIsNegative(t *testing.T) {
	r := &Request{Timeline: Timeline{
		Due: begin, Ready: begin.Add(-milli), Lane: begin.Add(-2 * milli), Waited: true, Write: begin.Add(-3 * milli),
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
		for what, get := range map[string]func() (time.Duration, bool){"TTFT": r.TTFT, "TTFAT": r.TTFAT, "TTFT from due": r.TTFTFromDue, "e2e": r.E2E, "e2e from due": r.E2EFromDue} {
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
	f("one token", 1, []time.Duration{milli}, true, false, 0)
	f("several tokens in one chunk", 5, []time.Duration{milli}, true, false, 0)
	f("one token in two chunks", 1, []time.Duration{milli, 2 * milli}, true, false, 1)
	f("two tokens", 2, []time.Duration{milli, 2 * milli}, true, true, 1)
}

// An answer that is not streamed has an end but no first token, whatever its number of tokens.
func TestWholeAnswerHasNoFirstToken(t *testing.T) {
	r := &Request{Usage: Usage{Output: 500}, Timeline: Timeline{Due: begin, Write: begin.Add(milli), Chunks: []time.Duration{700 * milli}, Whole: true}}
	for name, get := range map[string]func() (time.Duration, bool){"TTFT": r.TTFT, "TTFAT": r.TTFAT, "TTFT from due": r.TTFTFromDue, "TPOT": r.TPOT} {
		if d, defined := get(); defined || d != 0 {
			t.Errorf("%s: want it undefined, got %v", name, d)
		}
	}
	if gaps := slices.Collect(r.ITL()); len(gaps) != 0 {
		t.Errorf("ITL: want none, got %v", gaps)
	}
	if d, defined := r.E2E(); !defined || d != 700*milli {
		t.Errorf("e2e: want 700ms, got %v, %v", d, defined)
	}
	if d, defined := r.E2EFromDue(); !defined || d != 701*milli {
		t.Errorf("e2e from due: want 701ms, got %v, %v", d, defined)
	}
}

// The tokens of the first content chunk take no decoding time.
func TestTPOTLeavesOutTheOpening(t *testing.T) {
	for _, c := range []struct {
		output, opening int
		want            time.Duration
		ok              bool
	}{{9, 0, 5 * time.Millisecond, true}, {9, 1, 5 * time.Millisecond, true}, {9, 5, 10 * time.Millisecond, true}, {9, 9, 0, false}, {1, 0, 0, false}} {
		r := Request{
			Outcome: OK, Usage: Usage{Output: c.output, Opening: c.opening},
			Timeline: Timeline{Chunks: []time.Duration{time.Millisecond, 41 * time.Millisecond}},
		}
		got, ok := r.TPOT()
		if got != c.want || ok != c.ok {
			t.Errorf("%d tokens, %d in the first chunk: want %v, %t, got %v, %t", c.output, c.opening, c.want, c.ok, got, ok)
		}
		if v := r.Values()[TPOT]; ok && v != float64(c.want)/1e6 || !ok && !math.IsNaN(v) {
			t.Errorf("%d tokens, %d in the first chunk: got a value of %v", c.output, c.opening, v)
		}
	}
}
