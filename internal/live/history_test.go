package live

import (
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"replayd/internal/measure"
	"replayd/internal/secret"
)

// near reports whether got is within a relative error of want.
func near(got value, want, within float64) bool { return math.Abs(float64(got)-want) <= want*within }

// TestSlotsEndOnTheirInstants observes requests on both sides of a slot's end: a request that ends before the tick of
// second 5 is in the first slot.
func TestSlotsEndOnTheirInstants(t *testing.T) {
	run(t, func(t *testing.T, b *Board) {
		f := newFeed(b, WorkloadOptions{Name: "a"})
		pass(second) // the first tick: counts after it have a time
		for range 8 {
			f.end(measure.OK, 100*ms, 10*ms, "")
		}
		pass(4*second - 1)
		f.end(measure.HTTP5xx, 0, 0, "no")
		f.drop(measure.Overload, 2)
		f.change(func(s *State) { s.Ledger.InFlight = 3 })
		if rows := told(b).Workloads[0].Figures.Rows; len(rows) != 0 {
			t.Fatalf("a nanosecond before the border: %d rows, want none", len(rows))
		}
		pass(1)
		f.end(measure.OK, 400*ms, 40*ms, "")
		rows := told(b).Workloads[0].Figures.Rows
		if len(rows) != 1 {
			t.Fatalf("at the border: %d rows, want 1", len(rows))
		}
		r := rows[0]
		if r[rowOK] != 2 || r[rowFailed] != 0.25 || r[rowDropped] != 0.5 || r[rowOutput] != 22 || r[rowPrompt] != 200 || r[rowInFlight] != 3 {
			t.Errorf("8 ok, 1 failed, 2 dropped, 88 and 800 tokens within 4 s: got %v", r)
		}
		if !near(r[rowLatencies], 0.1, 0.0434) || !near(r[rowLatencies+1], 0.1, 0.0434) || !near(r[rowLatencies+2], 0.01, 0.0434) || !near(r[rowLatencies+5], 1e-4, 0.0434) {
			t.Errorf("latencies: got %v", r[rowLatencies:])
		}
		pass(5 * second)
		rows = told(b).Workloads[0].Figures.Rows
		if len(rows) != 2 || rows[1][rowOK] != 0.2 || !near(rows[1][rowLatencies], 0.4, 0.0434) {
			t.Errorf("one ok within 5 s: got %v", rows)
		}
	})
}

// TestLastMinute follows one request: it is in rates for 10 s,
// and in latencies until its slot is more than a minute old.
func TestLastMinute(t *testing.T) {
	run(t, func(t *testing.T, b *Board) {
		f := newFeed(b, WorkloadOptions{Name: "a", SLO: measure.SLO{{Quantity: measure.TTFT, Limit: 50}}})
		pass(12500 * ms)
		f.end(measure.OK, 100*ms, 10*ms, "")
		look := func(at time.Duration, rate value, counted, latencies int64) {
			t.Helper()
			m, n := told(b).Workloads[0].Figures, f.inMinute()
			if member(m.Rates, "finished") != rate || m.Minute.Outcomes[measure.OK] != counted || n != latencies {
				t.Errorf("at %v: rate %v, counted %d, latencies %d; want %v, %d, %d", at, member(m.Rates, "finished"),
					m.Minute.Outcomes[measure.OK], n, rate, counted, latencies)
			}
		}
		look(12500*ms, 0, 0, 1) // no tick yet
		pass(500 * ms)
		look(13*second, 0.1, 1, 1)
		pass(9 * second)
		look(22*second, 0.1, 1, 1)
		pass(second)
		look(23*second, 0, 1, 1)
		pass(49 * second)
		look(72*second, 0, 1, 1)
		pass(second)
		look(73*second, 0, 0, 1)
		pass(second)
		look(74*second, 0, 0, 1)
		pass(second)
		look(75*second, 0, 0, 0) // the slot from 10 to 15 s is a minute old
	})
}

// TestHistoryIsBounded runs for longer than the history.
func TestHistoryIsBounded(t *testing.T) {
	run(t, func(t *testing.T, b *Board) {
		f := newFeed(b, WorkloadOptions{Name: "a"})
		for i := range 700 {
			pass(second)
			f.end(measure.ConnectFailed, 0, 0, fmt.Sprintf("error %d", i%25))
			b.Note(time.Now(), slog.LevelInfo, "x")
		}
		s := told(b)
		if n := len(s.Workloads[0].Figures.Rows); n != slots {
			t.Errorf("%d rows, want %d", n, slots)
		}
		if n := len(f.history.counts); n != minuteMarks+1 {
			t.Errorf("%d marks, want %d", n, minuteMarks+1)
		}
		if n := len(s.Workloads[0].Figures.Failures); n != keptFailures {
			t.Errorf("%d failures, want %d", n, keptFailures)
		}
		if n := len(s.Notes); n != keptNotes {
			t.Errorf("%d notes, want %d", n, keptNotes)
		}
	})
}

// TestAStopLeavesAGap: a process that stood still missed ticks, so there are unknown slots.
func TestAStopLeavesAGap(t *testing.T) {
	h := &history{}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	counts := func(ok int64) measure.Ledger {
		return measure.Ledger{Expected: ok, Outcomes: map[measure.Outcome]int64{measure.OK: ok}}
	}
	h.tick(at, 10, counts(0))
	h.observe(request("a", measure.OK, 100*ms, 10*ms))
	rows := h.tick(at.Add(21*second), 14, counts(42))
	if len(rows) != 4 || rows[0][rowOK] != 2 || rows[1] == rows[0] {
		t.Fatalf("42 requests in 21 s: got %v", rows)
	}
	for _, r := range rows[1:] {
		for i, f := range r {
			if f.known() {
				t.Errorf("%s of a slot in which nothing ran: %v", columns[i], f)
			}
		}
	}
	h.tick(at.Add(90*second), 28, counts(42))
	if latency := h.lastMinute(); latency[ttft].count() != 0 {
		t.Errorf("70 s later there is still something in the last minute")
	}
	if rows := h.tick(at.Add(24*time.Hour), 17000, counts(42)); len(rows) != slots || len(h.rows) != slots {
		t.Errorf("a day later: %d rows of %d, want %d", len(rows), len(h.rows), slots)
	}
}

func TestTheSameFailureIsOneLine(t *testing.T) {
	run(t, func(t *testing.T, b *Board) {
		f := newFeed(b, WorkloadOptions{Name: "a"})
		f.end(measure.ConnectFailed, 0, 0, "refused")
		f.end(measure.HTTP5xx, 0, 0, "no")
		pass(second)
		f.end(measure.ConnectFailed, 0, 0, "refused")
		f.end(measure.Cancelled, 0, 0, "as asked")
		f.end(measure.ConnectFailed, 0, 0, "refused")
		got := told(b).Workloads[0].Figures.Failures
		if len(got) != 2 || got[0].Text != "refused" || got[0].Count != 3 || got[0].ID != "a/7/5" || got[1].ID != "a/7/2" {
			t.Errorf("got %+v", got)
		}
		if at := time.Time(got[0].At); !at.Equal(time.Now()) {
			t.Errorf("at %v, want that of the last, %v", at, time.Now())
		}
	})
}

// TestLongFailures: failures with the same shown text are one line, and no character is split.
func TestLongFailures(t *testing.T) {
	var f failures
	long := strings.Repeat("€", failureBytes/3)
	for _, text := range []string{long + "1", "x" + long, long + "2"} {
		f.add(&measure.Request{ID: "a" + long, Outcome: measure.HTTP5xx, Error: secret.Text(text)})
	}
	got := f.all()
	if len(got) != 2 || got[0].Count != 2 || got[0].Text != long[:failureBytes-3]+"…" || got[1].Text != "x"+long[:failureBytes-6]+"…" {
		t.Errorf("got %+v", got)
	}
	if id := got[0].ID; id != "a"+long[:123]+"…" {
		t.Errorf("an ID of %d bytes: %s", len(id), id)
	}
}

// TestEveryFailureHasItsTurn: of several failures that keep
// coming, the one not sent for the longest time is sent first.
func TestEveryFailureHasItsTurn(t *testing.T) {
	var f failures
	add := func(texts ...string) {
		for _, text := range texts {
			f.add(&measure.Request{Outcome: measure.HTTP5xx, Error: secret.Text(text)})
		}
	}
	told := func(want string) {
		t.Helper()
		got := ""
		for _, one := range f.news() {
			got += fmt.Sprintf("%s×%d ", one.Text, one.Count)
		}
		if got != want {
			t.Errorf("told %q, want %q", got, want)
		}
	}
	told("")
	add("a", "b", "c")
	told("c×1 ")
	add("c", "c", "a")
	told("a×2 ")
	add("c")
	told("b×1 ")
	told("c×4 ")
	told("")
	add("a", "d")
	told("d×1 ")
	told("a×3 ")
}
