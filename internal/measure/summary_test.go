package measure

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/stats"
)

func summarized() *Summary {
	s := NewSummary(slo)
	w := NewMeter(prometheus.NewRegistry()).Workload(labels, WorkloadOptions{})
	for _, r := range script(w) {
		s.Observe(r)
	}
	s.Drop(Overload)
	s.Drop(Missed)
	s.Drop(Filtered)
	return s
}

func TestFigures(t *testing.T) {
	f := summarized().Figures()
	eq := func(name string, got, want float64) {
		t.Helper()
		if diff := got - want; diff > 1e-9 || diff < -1e-9 {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	eq("expected", float64(f.Expected), 9) // 7 finished, 2 dropped; a filtered row is none
	eq("ok", float64(f.Outcomes[OK]), 4)
	eq("kinds of outcomes", float64(len(f.Outcomes)), 4)
	eq("filtered", float64(f.Dropped[Filtered]), 1)
	eq("span", f.Span.Seconds(), 6) // the first was due at 0, the last ended at 6 s
	eq("requests/s", f.RequestRate, 4.0/6)
	eq("goodput/s", f.GoodputRate, 2.0/6)
	eq("goodput share", f.GoodputShare(), 2.0/9)
	eq("goodput share of nothing", Figures{}.GoodputShare(), 0)
	eq("input tokens/s", f.InputRate, 300.0/6)
	eq("output tokens/s", f.OutputRate, 8.0/6)
	eq("tokens/s per user", f.UserRate, (1/0.015+1/0.06+1/2.0)/3) // of TPOT 15 ms, 60 ms, 2 s
	eq("TTFT", f.TTFT.Mean.Seconds(), (0.05+0.2+0.01+0.04)/4)
	eq("TTFT p50", f.TTFT.P50.Seconds(), (0.04+0.05)/2)
	eq("TTFT from due, max", f.TTFTFromDue.Max.Seconds(), 0.7)
	eq("TPOT p50", f.TPOT.P50.Seconds(), 0.06)
	eq("ITL p25", f.ITL.P25.Seconds(), 0.0175) // rank 0.75 of 10, 20, 60, 2000 ms
	eq("e2e max", f.E2E.Max.Seconds(), 2.01)
	eq("e2e from due, min", f.E2EFromDue.Min.Seconds(), 0.04)
	eq("lateness N", float64(f.Lateness.N), 6)
	eq("lateness max", f.Lateness.Max.Seconds(), 0.003)
}

// All of an answer within one read has a TPOT of 0 and no rate; it must not make the mean infinite.
func TestUserRateWithoutAnInterval(t *testing.T) {
	s := NewSummary(SLO{})
	s.Observe(request("", 0, OK, 10*ms, 10*ms))
	s.Observe(request("", 0, OK, 10*ms, 20*ms))
	if got := s.Figures().UserRate; got != 100 {
		t.Errorf("tokens/s per user = %v, want 100", got)
	}
}

// The bounds of slo are 100 ms, 15 ms and 1 s. Of script's four ok requests the second is over the first two and the third over
// the last two; three others failed and two were dropped.
func TestMisses(t *testing.T) {
	f := summarized().Figures()
	want := []Miss{
		{"ttft", slo[0], 1, 200, 195500 * time.Microsecond},
		{"tpot", slo[1], 2, 2000, 1961200 * time.Microsecond},
		{"e2e", slo[2], 1, 2010, 1957500 * time.Microsecond},
		{"output_token_throughput_per_user", slo[3], 1, 0.5, 0},
		{SLO: "error", Requests: 5},
	}
	if !slices.Equal(f.Misses, want) {
		t.Errorf("misses\n got %+v\nwant %+v", f.Misses, want)
	}
	const text = "ttft: 1 of 9 requests (11.1 %) over 100ms, p99 195.5ms, worst 200ms; " +
		"tpot: 2 of 9 requests (22.2 %) over 15ms, p99 1.961s, worst 2s; " +
		"e2e: 1 of 9 requests (11.1 %) over 1s, p99 1.958s, worst 2.01s; " +
		"output_token_throughput_per_user: 1 of 9 requests (11.1 %) under 1, worst 0.5; " +
		"error: 5 of 9 (55.6 %) did not end ok: 1 http_429, 1 connect, 1 truncated, 1 dropped overload, 1 dropped missed; " +
		"goodput 0.2222, want at least 0.5"
	if got := f.Missed(0.5); got != text {
		t.Errorf("\n got %s\nwant %s", got, text)
	}
}

// A share that is almost the one that was wanted is not shown as if it were.
func TestMissedByALittle(t *testing.T) {
	f := Figures{Expected: 400_000, Goodput: 399_999, Outcomes: map[Outcome]int64{OK: 399_999, Empty: 1}}
	f.Misses = f.misses([sloKinds]int64{}, &Values{})
	const want = "error: 1 of 400000 (0.00025 %) did not end ok: 1 empty; goodput 0.9999, want at least 1"
	if got := f.Missed(1); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if got := (Figures{}).Missed(1); got != "goodput 0.0000, want at least 1" {
		t.Errorf("of nothing: %s", got)
	}
}

// Whatever a request breaks, it is goodput or in a miss, and no miss is counted twice for it.
func TestMissesAddUp(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	bound := SLO{{TTFT, 50}, {TPOT, 10}, {E2E, 100}}
	for range 100 {
		s := NewSummary(bound)
		var good, expected int64
		for range random.IntN(50) {
			first := time.Duration(random.IntN(100)) * ms
			r := request("", 0, outcomes[random.IntN(len(outcomes))], first, first+time.Duration(random.IntN(100))*ms)
			if v := r.Values(); bound.Good(r.Outcome, &v) {
				good++
			}
			if r.Outcome != Cancelled {
				expected++
			}
			s.Observe(r)
		}
		if random.IntN(2) == 0 {
			s.Drop(Overload)
			expected++
		}
		f := s.Figures()
		var sum, most int64
		for _, m := range f.Misses {
			sum += m.Requests
			most = max(most, m.Requests)
		}
		if f.Judged() != expected || f.Goodput != good || most > expected-good || sum < expected-good {
			t.Fatalf("%d expected, %d good, got %d, %d and %+v", expected, good, f.Judged(), f.Goodput, f.Misses)
		}
	}
}

// A request that the workload cancelled itself is neither ok nor failed: it takes nothing off the share of goodput and breaks no
// service level.
func TestCancelledIsNotJudged(t *testing.T) {
	s := NewSummary(slo)
	s.Observe(request("", 0, OK, 10*ms, 20*ms))
	s.Observe(request("", 0, Cancelled, 10*ms))
	s.Observe(request("", 0, Cancelled))
	f := s.Figures()
	if f.Expected != 3 || f.Judged() != 1 || f.GoodputShare() != 1 || f.Misses != nil {
		t.Errorf("3 expected, 1 judged, all of that good, nothing missed: got %d, %d, %v, %v", f.Expected, f.Judged(), f.GoodputShare(), f.Misses)
	}
	if f.TTFT.N != 1 {
		t.Errorf("%d samples of TTFT, want 1: that of the ok request", f.TTFT.N)
	}
	s.Observe(request("", 0, Empty))
	if text, want := s.Figures().Missed(1), "error: 1 of 2 (50 %) did not end ok: 1 empty; goodput 0.5000, want at least 1"; text != want {
		t.Errorf("\n got %s\nwant %s", text, want)
	}
	var b strings.Builder
	if err := s.WriteTable(&b); err != nil || !strings.Contains(b.String(), " 1 of 2 expected and not cancelled (ok and ") {
		t.Errorf("%v\n%s", err, &b)
	}
}

// What was sent to warm the server up is in no figure.
func TestWarmupIsInNoFigure(t *testing.T) {
	s := NewSummary(slo)
	warm := request("", 0, OK, 10*ms, 20*ms)
	warm.Phase = Warmup
	s.Observe(warm)
	if f := s.Figures(); f.Expected != 0 || f.TTFT.N != 0 || f.Lateness.N != 0 || f.Span != 0 || len(f.Outcomes) != 0 {
		t.Errorf("%+v", f)
	}
}

// One JSON answer has no first token and no gap: only its end is a sample.
func TestWholeAnswersHaveNoFirstToken(t *testing.T) {
	s := NewSummary(slo)
	whole := request("", 0, OK, 20*ms)
	whole.Timeline.Whole = true
	s.Observe(whole)
	f := s.Figures()
	if f.TTFT.N+f.TTFTFromDue.N+f.TPOT.N+f.ITL.N != 0 || f.E2E.N != 1 || f.E2E.Mean != 20*ms || f.Goodput != 1 {
		t.Errorf("%+v", f)
	}
}

// More percentiles stand among the others, each once.
func TestTablePercentiles(t *testing.T) {
	var b strings.Builder
	if err := summarized().WriteTable(&b, 99.9, 50, 5); err != nil {
		t.Fatal(err)
	}
	golden(t, "table_percentiles.golden", b.String())
}

func TestTable(t *testing.T) {
	table := func(s *Summary) string {
		t.Helper()
		var b strings.Builder
		if err := s.WriteTable(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	golden(t, "table.golden", table(summarized()))
	golden(t, "table_empty.golden", table(NewSummary(SLO{})))

	many := NewSummary(SLO{})
	many.Observe(request("", 0, OK, make([]time.Duration, stats.ExactValues+2)...)) // one gap more than is kept
	golden(t, "table_approximate.golden", table(many))
}

func TestShort(t *testing.T) {
	f := func(d time.Duration, want string) {
		t.Helper()
		if got := Short(d); got != want {
			t.Errorf("Short(%v) = %q, want %q", d, got, want)
		}
	}
	f(0, "0 µs")
	f(999_499, "999 µs")
	f(999_500, "1.0 ms")
	f(9_949_999, "9.9 ms")
	f(9950*time.Microsecond, "10 ms")
	f(999_499*time.Microsecond, "999 ms")
	f(999_500*time.Microsecond, "1.00 s")
	f(9994*ms, "9.99 s")
	f(9995*ms, "10.0 s")
	f(61*time.Second, "61.0 s")
}

type fullDisk struct{ room int }

var errFull = errors.New("no space left on device")

func (d *fullDisk) Write(b []byte) (int, error) {
	if n := d.room; n < len(b) {
		d.room = 0
		return n, errFull
	}
	d.room -= len(b)
	return len(b), nil
}

func TestTableWriteError(t *testing.T) {
	if err := NewSummary(SLO{}).WriteTable(&fullDisk{room: 10}); !errors.Is(err, errFull) {
		t.Errorf("error %v, want %v", err, errFull)
	}
}
