package sim

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// only is a Faults of one kind.
func only(outcome string) Faults {
	return map[string]Faults{
		OK:              {},
		FaultError500:   {Error500: 1},
		FaultError429:   {Error429: 1},
		FaultCut:        {Cut: 1},
		FaultGarbled:    {Garbled: 1},
		FaultEmpty:      {Empty: 1},
		FaultStalled:    {Stalled: 1},
		FaultErrorEvent: {ErrorEvent: 1},
		FaultAbort:      {Abort: 1},
	}[outcome]
}

// The answer that a client sees for each fault, streamed and unstreamed. An answer has 5 tokens; half of it is 3.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		fault    string
		stream   bool
		status   int
		words    int
		end      string // of the body
		contains string
		err      error // of reading it
		took     time.Duration
	}{
		{fault: FaultError500, stream: true, status: 500, contains: `"type":"InternalServerError"`},
		{fault: FaultError429, stream: true, status: 429, contains: `"code":429`},
		{fault: FaultCut, stream: true, status: 200, words: 3, err: io.ErrUnexpectedEOF, took: 3 * time.Second},
		{fault: FaultCut, status: 200, err: io.ErrUnexpectedEOF, took: 3 * time.Second},
		{fault: FaultGarbled, stream: true, status: 200, words: 5, contains: `"choices":[{"index":0,"del` + "\n\n", end: done, took: 5 * time.Second},
		{fault: FaultGarbled, status: 200, took: 5 * time.Second},
		{fault: FaultEmpty, stream: true, status: 200, contains: `"finish_reason":"stop"`, end: done, took: time.Second},
		{fault: FaultEmpty, status: 200, contains: `"completion_tokens":0`, took: time.Second},
		{fault: FaultStalled, stream: true, status: 200, words: 3, err: io.ErrUnexpectedEOF, took: 3*time.Second + stallLimit},
		{fault: FaultStalled, status: 200, err: io.ErrUnexpectedEOF, took: 3*time.Second + stallLimit},
		{fault: FaultErrorEvent, stream: true, status: 200, words: 3, contains: `data: {"error":{"message":`, end: done, took: 3 * time.Second},
		{fault: FaultErrorEvent, status: 500, contains: `{"error":{"message":`, took: 5 * time.Second},
		{
			fault: FaultAbort, stream: true, status: 200, words: 3, contains: `"finish_reason":"abort"`, took: 3 * time.Second,
			end: `"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":0}}}` + "\n\n" + done,
		},
		{fault: FaultAbort, status: 200, words: 3, contains: `"finish_reason":"abort"`, took: 3 * time.Second},
		{fault: OK, status: 200, words: 5, took: 5 * time.Second},
	} {
		t.Run(c.fault+" "+strconv.FormatBool(c.stream), func(t *testing.T) {
			o := Defaults()
			o.TTFT, o.ITL, o.Faults = time.Second, time.Second, only(c.fault)
			simulate(t, o, func(b bench) {
				start := time.Now()
				body := completion("about", 5)
				if !c.stream {
					body = `{"prompt":"about","max_tokens":5,"ignore_eos":true}`
				}
				r := b.post(b.Context(), pathCompletions, "", body)
				if r.status != c.status || len(strings.Fields(r.text)) != c.words || !strings.Contains(r.body, c.contains) || !strings.HasSuffix(r.body, c.end) {
					b.Errorf("%d, %q in\n%s", r.status, r.text, r.body)
				}
				if !errors.Is(r.err, c.err) {
					b.Errorf("error: got %v, want %v", r.err, c.err)
				}
				if took := time.Since(start); took != c.took {
					b.Errorf("took %v, want %v", took, c.took)
				}
				if got := b.tally.ended(); len(got) != 1 || got[c.fault] != 1 {
					b.Errorf("ended: %+v", got)
				}
				if l := b.engine.batch.load(); l.running != 0 {
					b.Errorf("still running: %+v", l)
				}
				if l := b.get("/health"); l != "" { // the connection, or a new one, serves on
					b.Errorf("health: %q", l)
				}
			})
		})
	}
}

// A stalled answer holds its slot until the client leaves.
func TestStalledClientLeaves(t *testing.T) {
	o := Defaults()
	o.Faults, o.Slots = only(FaultStalled), 1
	simulate(t, o, func(b bench) {
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		defer cancel()
		b.post(ctx, pathCompletions, "", completion("about", 5))
		pass(time.Millisecond)
		if got, l := b.tally.ended(), b.engine.batch.load(); got[FaultStalled] != 1 || l.running != 0 {
			b.Errorf("ended %+v, load %+v", got, l)
		}
	})
}

// Cutting the unit interval at 10,000 points gives the shares exactly.
func TestFaultShares(t *testing.T) {
	f := Faults{
		Error500: .01, Error429: .02, Cut: .03, Garbled: .04, Empty: .05, Stalled: .06, ErrorEvent: .07, Abort: .08,
	}
	got := make(map[string]int)
	for i := range 10000 {
		got[f.pick((float64(i)+.5)/10000)]++
	}
	sum := 0
	for _, s := range f.shares() {
		if want := int(math.Round(s.share * 10000)); got[s.outcome] != want {
			t.Errorf("%s: got %d, want %d", s.field, got[s.outcome], want)
		}
		sum += got[s.outcome]
	}
	if got[OK] != 10000-sum || got[OK] != 6400 {
		t.Errorf("ok: got %d, want 6400", got[OK])
	}
}

// The fault of a request depends only on seed and id, and over many ids the shares hold.
func TestFaultsRepeat(t *testing.T) {
	f := Faults{Cut: .3}
	drawn := func(seed uint64) (cut []int) {
		for i := range 4000 {
			if f.pick(draws(seed, "w/0/"+strconv.Itoa(i)).Float64()) == FaultCut {
				cut = append(cut, i)
			}
		}
		return cut
	}
	a := drawn(1)
	// The standard deviation of 4000 draws of 0.3 is 29; four of them are 116.
	if len(a) < 1200-116 || len(a) > 1200+116 {
		t.Errorf("got %d faults of 4000, want about 1200", len(a))
	}
	if !slices.Equal(a, drawn(1)) {
		t.Error("the same seed gave other faults")
	}
	if slices.Equal(a, drawn(2)) {
		t.Error("another seed gave the same faults")
	}
}
