package result

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/internal/stats"
	"replayd/test/measuretest"
)

// A ran is a Summary and the workload whose requests it observes.
type ran struct {
	*Summary
	w *metrics.Workload
}

func newRan(slo measure.SLO) ran {
	return ran{NewSummary(slo, measure.SessionSLO{}), metrics.NewMeter(prometheus.NewRegistry()).Workload(metrics.Labels{Workload: "conversation", Target: "vllm", Model: "qwen"}, metrics.WorkloadOptions{SLO: slo})}
}

// ends makes a request fall due, go out and end.
func (r ran) ends(one *measure.Request) {
	r.w.Expected(1)
	r.w.Sent()
	r.w.Finished(one)
	r.Observe(one)
}

func (r ran) found(q measure.Quantity) stats.Durations { return r.samples[q].Durations() }

func (r ran) table(t *testing.T, width int, more ...float64) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteTable(&b, r.w.Ledger(), width, more...); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// scripted returns a run of seven requests, four drops and five filtered rows. Requests that were waiting or in flight
// at the end were cut.
func scripted() ran {
	r := newRan(measuretest.SLO)
	r.w.Expected(13)
	for _, one := range measuretest.Script() {
		r.w.Sent()
		r.w.Finished(one)
		r.Observe(one)
	}
	r.w.Sent()
	for _, why := range []measure.DropReason{measure.Overload, measure.Missed, measure.Guarded, measure.Budget} {
		r.w.Dropped(why)
	}
	r.w.Filtered(5)
	r.w.Dropped(measure.Shutdown)
	cut := measuretest.Request("conversation/3/7", 5*time.Second, measure.Aborted)
	r.w.Finished(cut)
	r.Observe(cut)
	return r
}

func TestFigures(t *testing.T) {
	r := scripted()
	eq := func(name string, got, want float64) {
		t.Helper()
		if diff := got - want; diff > 1e-9 || diff < -1e-9 {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	eq("span", r.span().Seconds(), 6)                           // the first was due at 0, the last ended at 6 s
	eq("tokens/s per user", r.perUser(), (2+1+1)/(0.03+0.06+2)) // 2 tokens in 30 ms, one in 60 ms, one in 2 s
	eq("TTFT", r.found(measure.TTFT).Mean.Seconds(), (0.05+0.2+0.01+0.04)/4)
	eq("TTFT p50", r.samples[measure.TTFT].Percentile(50).Seconds(), (0.04+0.05)/2)
	eq("TTFT from due, max", r.found(measure.TTFTFromDue).Max.Seconds(), 0.7)
	eq("TPOT p50", r.samples[measure.TPOT].Percentile(50).Seconds(), 0.06)
	eq("ITL p25", r.itl.Percentile(25).Seconds(), 0.0175) // rank 0.75 of 10, 20, 60, 2000 ms
	eq("e2e max", r.found(measure.E2E).Max.Seconds(), 2.01)
	eq("e2e from due, min", r.found(measure.E2EFromDue).Min.Seconds(), 0.04)
	eq("lateness N", float64(r.found(measure.Lateness).N), 7)
	eq("lateness max", r.found(measure.Lateness).Max.Seconds(), 0.0025)
	eq("time to connect", r.connect.Durations().Max.Seconds(), 0.0005)
}

// Nine answers of 11 tokens take 1 s after their first token, 10 tokens/s. One answer that was read almost at once must
// not decide the rate per user: as a mean of 1/TPOT the rate would be 1,009.
func TestOneMergedReadDoesNotDecideTheUserRate(t *testing.T) {
	r := newRan(nil)
	for range 9 {
		one := measuretest.Request("", 0, measure.OK, 10*time.Millisecond, 1010*time.Millisecond)
		one.Usage.Output = 11
		r.ends(one)
	}
	merged := measuretest.Request("", 0, measure.OK, 10*time.Millisecond, 11*time.Millisecond)
	merged.Usage.Output = 11
	r.ends(merged)
	if got, want := r.perUser(), 100/9.001; math.Abs(got-want) > 1e-9 {
		t.Errorf("tokens/s per user = %v, want %v", got, want)
	}
	at := newRan(nil)
	at.ends(measuretest.Request("", 0, measure.OK, 10*time.Millisecond, 10*time.Millisecond))
	if got := at.perUser(); got != 0 {
		t.Errorf("tokens/s per user = %v of an answer within one read, want none", got)
	}
}

// The bounds of the SLO are 100 ms, 15 ms and 1 s. Of the script's four ok requests the second breaks the first two
// bounds and the third the last two. Four others failed and five were dropped.
func TestMisses(t *testing.T) {
	r := scripted()
	want := []miss{
		{measuretest.SLO[0], 1, 200, 195500 * time.Microsecond},
		{measuretest.SLO[1], 2, 2000, 1961200 * time.Microsecond},
		{measuretest.SLO[2], 1, 2010, 1957500 * time.Microsecond},
		{measuretest.SLO[3], 1, 0.5, 0},
	}
	if got := r.misses(r.w.Ledger()); !slices.Equal(got, want) {
		t.Errorf("misses\n got %+v\nwant %+v", got, want)
	}
	const text = "ttft: 1 of 13 requests (7.69 %) over 100ms, p99 195.5ms, worst 200ms; " +
		"tpot: 2 of 13 requests (15.4 %) over 15ms, p99 1.961s, worst 2s; " +
		"e2e: 1 of 13 requests (7.69 %) over 1s, p99 1.958s, worst 2.01s; " +
		"output_token_throughput_per_user: 1 of 13 requests (7.69 %) under 1, worst 0.5; " +
		"error: 9 of 13 (69.2 %) did not end ok: 1 http_429, 1 connect, 1 truncated, 1 aborted, 1 dropped overload, 1 dropped guard, " +
		"1 dropped budget, 1 dropped missed, 1 dropped shutdown; attainment 0.1538, want at least 0.5"
	if got := r.Missed(r.w.Ledger(), 0.5); got != text {
		t.Errorf("\n got %s\nwant %s", got, text)
	}
}

// A share just below the wanted one is not shown as if it reached it.
func TestMissedByALittle(t *testing.T) {
	l := measure.Ledger{Expected: 400_000, Good: 399_999, Outcomes: map[measure.Outcome]int64{measure.OK: 399_999, measure.Empty: 1}}
	const want = "error: 1 of 400000 (0.00025 %) did not end ok: 1 empty; attainment 0.9999, want at least 1"
	if got := NewSummary(nil, measure.SessionSLO{}).Missed(l, 1); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if got := NewSummary(nil, measure.SessionSLO{}).Missed(measure.Ledger{}, 1); got != "attainment no data, want at least 1" {
		t.Errorf("of nothing: %s", got)
	}
}

// Each request is either good or in a miss, and no miss counts it twice.
func TestMissesAddUp(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	bound := measure.SLO{{Quantity: measure.TTFT, Limit: 50}, {Quantity: measure.TPOT, Limit: 10}, {Quantity: measure.E2E, Limit: 100}}
	for range 100 {
		s := newRan(bound)
		var good, unjudged, expected int64
		for range random.IntN(50) {
			first := time.Duration(random.IntN(100)) * time.Millisecond
			r := measuretest.Request("", 0, measure.Outcomes()[random.IntN(measure.NumOutcomes)], first, first+time.Duration(random.IntN(100))*time.Millisecond)
			v := r.Values()
			kept, judged := bound.Good(r.Outcome, &v)
			if kept {
				good++
			}
			if !judged {
				unjudged++
			}
			expected++
			s.ends(r)
		}
		if random.IntN(2) == 0 {
			s.w.Expected(1)
			s.w.Dropped(measure.Overload)
			expected++
		}
		l := s.w.Ledger()
		misses := s.misses(l)
		most := l.Expected - l.Outcomes[measure.OK]
		sum := most
		for _, m := range misses {
			sum += m.requests
			most = max(most, m.requests)
		}
		if l.Expected != expected || l.Good != good || l.Unjudged != unjudged || most > l.Judged()-good || sum < l.Judged()-good {
			t.Fatalf("%d expected, %d good, %d not judged, got %d, %d, %d and %+v", expected, good, unjudged, l.Expected, l.Good, l.Unjudged, misses)
		}
	}
}

// A request that the workload cancelled itself was expected and is not good, because the plan asked for less than the
// whole answer. Service attainment does not count it.
func TestCancelledIsExpected(t *testing.T) {
	s := newRan(measuretest.SLO)
	s.ends(measuretest.Request("", 0, measure.OK, 10*time.Millisecond, 20*time.Millisecond))
	s.ends(measuretest.Request("", 0, measure.Cancelled, 10*time.Millisecond))
	l := s.w.Ledger()
	if all, _ := l.Attainment(); all != 0.5 {
		t.Errorf("attainment %v, want 0.5", all)
	}
	if service, _ := l.ServiceAttainment(); service != 1 {
		t.Errorf("service attainment %v, want 1", service)
	}
	if n := s.found(measure.TTFT).N; n != 1 {
		t.Errorf("%d samples of TTFT, want 1: that of the ok request", n)
	}
	if text, want := s.Missed(l, 1), "error: 1 of 2 (50 %) did not end ok: 1 cancelled; attainment 0.5000, want at least 1"; text != want {
		t.Errorf("\n got %s\nwant %s", text, want)
	}
}

// Warm-up requests are in no figure.
func TestWarmupIsInNoFigure(t *testing.T) {
	s := newRan(measuretest.SLO)
	warm := measuretest.Request("", 0, measure.OK, 10*time.Millisecond, 20*time.Millisecond)
	warm.Phase = measure.Warmup
	s.Observe(warm)
	if s.found(measure.TTFT).N != 0 || s.found(measure.Lateness).N != 0 || s.span() != 0 {
		t.Errorf("%+v", s.Summary)
	}
}

// An answer that is not streamed has no first token and no gap: only its end is a sample.
func TestWholeAnswersHaveNoFirstToken(t *testing.T) {
	s := newRan(measuretest.SLO)
	whole := measuretest.Request("", 0, measure.OK, 20*time.Millisecond)
	whole.Timeline.Whole = true
	s.ends(whole)
	if s.found(measure.TTFT).N+s.found(measure.TTFTFromDue).N+s.found(measure.TPOT).N+s.itl.Durations().N != 0 || s.found(measure.E2E).N != 1 || s.found(measure.E2E).Mean != 20*time.Millisecond || s.w.Ledger().Good != 1 {
		t.Errorf("%+v", s.Summary)
	}
}

// Additional percentiles are sorted among the usual ones, each once.
func TestTablePercentiles(t *testing.T) {
	golden(t, "table_percentiles.golden", []byte(scripted().table(t, 0, 99.9, 50, 5)))
}

func TestTable(t *testing.T) {
	golden(t, "table.golden", []byte(scripted().table(t, 0)))
	golden(t, "table_80.golden", []byte(scripted().table(t, 80)))
	golden(t, "table_empty.golden", []byte(newRan(nil).table(t, 0)))

	many := newRan(nil)
	chunks := make([]time.Duration, stats.ExactValues+2) // one gap more than is kept
	for i := range chunks {
		chunks[i] = time.Duration(i) * time.Millisecond
	}
	many.ends(measuretest.Request("", 0, measure.OK, chunks...))
	golden(t, "table_approximate.golden", []byte(many.table(t, 0)))
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
	if err := NewSummary(measure.SLO{}, measure.SessionSLO{}).WriteTable(&fullDisk{room: 10}, measure.Ledger{}, 0); !errors.Is(err, errFull) {
		t.Errorf("error %v, want %v", err, errFull)
	}
}

// A table fits any terminal of 60 columns or more, and has more columns on a wider one.
func TestTableFits(t *testing.T) {
	heads := map[int]string{}
	for width := 60; width <= 200; width++ {
		text := scripted().table(t, width)
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d columns: a line of %d: %s", width, n, line)
			}
		}
		heads[width] = strings.Join(strings.Fields(strings.SplitN(text, "\n", 2)[0]), " ")
	}
	for width, want := range map[int]string{60: "ms count mean p50 p90 p99 max", 120: "ms count mean std min p25 p50 p75 p90 p99 max"} {
		if heads[width] != want {
			t.Errorf("%d columns: want %s, got %s", width, want, heads[width])
		}
	}
}
