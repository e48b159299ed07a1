package live

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/internal/secret"
	"replayd/internal/trace"
)

// TestReplaced: a workload of the same name continues the history, and the replaced workload cannot remove it.
func TestReplaced(t *testing.T) {
	run(t, func(t *testing.T, b *Board) {
		old := newFeed(b, WorkloadOptions{Name: "a", Target: "t"})
		other := newFeed(b, WorkloadOptions{Name: "b", Target: "t"})
		pass(second)
		old.end(measure.HTTP5xx, 0, 0, "no")
		pass(9 * second)
		before := told(b).Workloads[0].Figures

		later := newFeed(b, WorkloadOptions{Name: "a", Target: "t", Lanes: 99})
		if f := told(b).Workloads[0].Figures; f.Phase != before.Phase || f.Expected != before.Expected || f.Finished != before.Finished {
			t.Errorf("before its first tick: %s, %d expected, %d finished; want %s, %d, %d", f.Phase, f.Expected, f.Finished, before.Phase, before.Expected, before.Finished)
		}
		later.change(func(s *State) { *s = old.now() })
		old.end(measure.HTTP5xx, 0, 0, "drained") // the old workload still drains
		b.Remove(old.Workload)
		s := told(b)
		if len(s.Workloads) != 2 || s.Workloads[0].Name != "a" || s.Workloads[0].Lanes != 99 {
			t.Fatalf("after the change: %+v", s.Workloads)
		}
		f := s.Workloads[0].Figures
		if len(f.Rows) != len(before.Rows) || f.Rows[0][rowFailed] != before.Rows[0][rowFailed] {
			t.Errorf("rows %v, want those of before, %v", f.Rows, before.Rows)
		}
		if len(f.Failures) != 2 || f.Verdict != before.Verdict {
			t.Errorf("failures %v and verdict %v, want both failures and the verdict %v", f.Failures, f.Verdict, before.Verdict)
		}
		pass(second)
		if got := told(b).Workloads[0].Figures; got.Minute.Outcomes[measure.HTTP5xx] != 1 {
			t.Errorf("counted in the last minute: %v, want the 1 of before the change", got.Minute.Outcomes)
		}
		b.Remove(later.Workload)
		b.Remove(later.Workload)
		if s := told(b); len(s.Workloads) != 1 || s.Workloads[0].Name != "b" {
			t.Errorf("after the removal: %+v", s.Workloads)
		}
		b.Remove(other.Workload)
	})
}

// TestAnotherTarget: another target has its own counters, which may be lower or, when the first target returns, higher.
// The step does not count in a rate.
func TestAnotherTarget(t *testing.T) {
	run(t, func(t *testing.T, b *Board) {
		old := newFeed(b, WorkloadOptions{Name: "a", Target: "t"})
		pass(second)
		old.end(measure.OK, 100*ms, 10*ms, "")
		pass(5 * second)
		later := newFeed(b, WorkloadOptions{Name: "a", Target: "u"})
		later.change(func(s *State) {
			s.Ledger.Expected = 5000
			s.Ledger.Outcomes[measure.OK] = 5000
		})
		pass(5 * second)
		f := told(b).Workloads[0].Figures
		if last := f.Rows[len(f.Rows)-1]; last[rowOK] != 0 || member(f.Rates, "finished") != value(0) || f.Finished != 5000 {
			t.Errorf("row %v, rate %v, finished %d; want rates of 0 and 5000", last, member(f.Rates, "finished"), f.Finished)
		}
		if f.Rows[0][rowOK] == 0 {
			t.Errorf("the history of before is gone: %v", f.Rows)
		}
	})
}

func TestWithoutSecrets(t *testing.T) {
	f := func(address, want string) {
		t.Helper()
		if got := withoutSecrets(address); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
	f("http://127.0.0.1:8000", "http://127.0.0.1:8000")
	f("https://user:secret@host/v1?key=secret#secret", "https://host/v1")
	f("http://bad host/\x00", "")
}

// TestSize: a workload takes less than 100 KB, with a full history and a curve.
func TestSize(t *testing.T) {
	const workloads = 50
	b := New(Options{})
	start := time.Now()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range workloads {
		bins := make([]int64, 240) // as many as a trace's curve has
		newFeed(b, WorkloadOptions{Name: fmt.Sprint(i), Curve: trace.Curve{Bin: second, Requests: bins, InputTokens: bins, OutputTokens: bins}})
	}
	for i := range 700 {
		b.tick(start.Add(time.Duration(i)*second), i/5)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / workloads
	t.Logf("%d bytes a workload", each)
	if each > 100<<10 {
		t.Errorf("%d bytes a workload, want at most %d", each, 100<<10)
	}
	runtime.KeepAlive(b)
}

// TestNewsAreSmall limits the size of a tick in which everything goes wrong at once.
func TestNewsAreSmall(t *testing.T) {
	run(t, func(t *testing.T, b *Board) {
		f := newFeed(b, WorkloadOptions{Name: "a-workload-with-a-name", SLO: measure.SLO{{Quantity: measure.TTFT, Limit: 1}}})
		f.change(func(s *State) {
			s.Reason, s.TargetText = strings.Repeat("why ", 50), strings.Repeat("how ", 50)
			s.Started, s.Next = time.Now(), time.Now().Add(time.Hour)
			s.Loop, s.Position, s.LoopDuration, s.Skew = 498686, 1234567*ms, time.Hour, 1234567
			s.Ledger.Waiting, s.Ledger.InFlight, s.Ledger.Retries, s.TargetUp = 12345, 256, 12345, true
		})
		pass(second)
		for i := range 20 {
			for _, o := range []measure.Outcome{measure.HTTP429, measure.HTTP5xx, measure.ConnectFailed, measure.TimeoutFirstToken, measure.Truncated, measure.ErrorEvent} {
				f.end(o, 0, 0, fmt.Sprint(i, strings.Repeat(" long", 100)))
			}
			f.end(measure.OK, 123*ms, 12*ms, "")
			f.drop(measure.Overload, 1234)
			f.drop(measure.Missed, 1234)
		}
		pass(4 * second)
		b.mu.Lock()
		defer b.mu.Unlock()
		rows := f.history.rows[len(f.history.rows)-1:]
		size := len(b.news([][]row{rows}))
		t.Logf("%d bytes", size)
		if size > 2048 {
			t.Errorf("%d bytes in one tick, want at most 2048", size)
		}
	})
}

// TestObserveAllocatesNothing checks requests that end ok and requests that fail.
func TestObserveAllocatesNothing(t *testing.T) {
	w := New(Options{}).Workload(WorkloadOptions{Name: "a"})
	good, bad := request("a/1/1", measure.OK, 100*ms, 10*ms), request("a/1/2", measure.HTTP5xx, 0, 0)
	bad.Error = secret.Text(strings.Repeat("long ", 100))
	if n := testing.AllocsPerRun(1000, func() { w.Observe(good); w.Observe(bad) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// TestObserveAtOnce: no request is lost between lanes and ticks.
func TestObserveAtOnce(t *testing.T) {
	const lanes, each = 16, 500
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{})
		f := newFeed(b, WorkloadOptions{Name: "a"})
		start := time.Now()
		var all sync.WaitGroup
		for range lanes {
			all.Go(func() {
				r := request("a/1/1", measure.OK, 100*ms, 10*ms)
				for range each {
					f.Observe(r)
				}
			})
		}
		for i := range 10 {
			b.tick(start.Add(time.Duration(i)*second), i/5)
		}
		all.Wait()
		b.tick(start.Add(10*second), 2)
		if n := f.inMinute(); n != lanes*each {
			t.Errorf("%d in the last minute, want %d", n, lanes*each)
		}
	})
}

func BenchmarkObserve(b *testing.B) {
	w := New(Options{}).Workload(WorkloadOptions{Name: "a"})
	r := request("a/1/1", measure.OK, 100*ms, 10*ms)
	b.ReportAllocs()
	for b.Loop() {
		w.Observe(r)
	}
}

func BenchmarkObserveFailure(b *testing.B) {
	w := New(Options{}).Workload(WorkloadOptions{Name: "a"})
	r := request("a/1/1", measure.HTTP5xx, 0, 0)
	r.Error = "503 Service Unavailable"
	b.ReportAllocs()
	for b.Loop() {
		w.Observe(r)
	}
}

func BenchmarkObserveFrom16(b *testing.B) {
	w := New(Options{}).Workload(WorkloadOptions{Name: "a"})
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		r := request("a/1/1", measure.OK, 100*ms, 10*ms)
		for pb.Next() {
			w.Observe(r)
		}
	})
}

// BenchmarkTick measures a second with 3 workloads, without a viewer and with one.
func BenchmarkTick(b *testing.B) {
	for _, watched := range []bool{false, true} {
		b.Run(map[bool]string{false: "unwatched", true: "watched"}[watched], func(b *testing.B) {
			board := New(Options{})
			for i := range 3 {
				f := newFeed(board, WorkloadOptions{Name: fmt.Sprint(i)})
				for range 100 {
					f.end(measure.OK, 100*ms, 10*ms, "")
				}
			}
			start := time.Now()
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				board.tick(start.Add(time.Duration(i)*second), i/5)
				if watched && !json.Valid(board.news(make([][]row, 3))) {
					b.Fatal("no JSON")
				}
				i++
			}
		})
	}
}

// Cancelled requests neither keep nor miss the SLO.
func TestCancelledAreNotJudged(t *testing.T) {
	run(t, func(t *testing.T, b *Board) {
		f := newFeed(b, WorkloadOptions{Name: "a", Closed: true, SLO: measure.SLO{{Quantity: measure.TTFT, Limit: 1000}}})
		pass(second)
		for range 10 {
			f.end(measure.OK, 100*ms, 10*ms, "")
			f.end(measure.Cancelled, 0, 0, "")
		}
		pass(2 * second)
		s := told(b).Workloads[0]
		if got := s.Figures.Minute.WithinSLO; got != 1 {
			t.Errorf("within the SLO: want 1, got %v", got)
		}
		held := newFeed(b, WorkloadOptions{Name: "held", SLO: measure.SLO{{Quantity: measure.TTFT, Limit: 1000}}})
		held.drop(measure.Guarded, 10)
		pass(2 * second)
		if got := told(b).Workloads[1].Figures.Minute.WithinSLO; got.known() {
			t.Errorf("within the SLO, with nothing eligible: want no value, got %v", got)
		}
		if s.Figures.Verdict.Level != well || len(s.Figures.Failures) != 0 || !s.Closed {
			t.Errorf("want all well, got %+v", s.Figures.Verdict)
		}
	})
}
