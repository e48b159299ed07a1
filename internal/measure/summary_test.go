package measure

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
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
	many.Observe(request("", 0, OK, make([]time.Duration, exactValues+2)...)) // one gap more than is kept
	golden(t, "table_approximate.golden", table(many))
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
