//go:build daemon

package daemon_test

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"replayd/internal/sim"

	"replayd/test/outside"
)

// A process that was stopped for a while continues at the right row. Requests that were due meanwhile are missed and
// counted, and never sent. Requests in flight have the times at which their answers really came.
func TestStop(t *testing.T) {
	const length, itl = 5 * time.Second, 25 * time.Millisecond
	s := newStage(t, "--ttft", "50ms", "--itl", itl.String(), "--chunk-tokens", "5", "--log-chunks")
	p := &plan{Rows: outside.Plain(55*40, 40, 100, 60, 4), Speed: 1, Every: time.Minute}
	for i := 0; i < len(p.Rows); i += 10 {
		p.Rows[i].Output = int((length - 2*time.Second) / itl) // these requests end late in the stop
	}
	path := filepath.Join(s.Dir, "trace.jsonl")
	outside.Put(t, path, outside.Trace(p.Rows))
	s.write(t, fmt.Sprintf(`records: {path: %q}
workloads: [{name: w, trace: {path: %q}, repeat: {every: 1m}, lanes: 1024}]
`, s.Records, path))
	// The whole stop is in one loop: after the end of a loop no row could be missed.
	room := length + 15*time.Second
	outside.Until(t, func() error {
		if at := time.Duration(time.Now().UnixNano()) % p.Every; at >= p.Offset(len(p.Rows)-1)-room {
			return fmt.Errorf("want the next loop, it is %v into one", at)
		}
		return nil
	})
	stolen := outside.StealTime()
	daemon, _ := s.Serve(t)
	w := func(now page) float64 { return now.Sum("replayd_requests_total", "ok") }
	outside.See(t, s.URL(), "100 requests that ended", func(now page) bool { return w(now) >= 100 })
	stopBefore, stopAfter := daemon.Signal(t, syscall.SIGSTOP)
	timer := time.NewTimer(length)
	defer timer.Stop()
	<-timer.C
	contBefore, contAfter := daemon.Signal(t, syscall.SIGCONT)
	before := w(outside.See(t, s.URL(), "a page", func(page) bool { return true }))
	final := outside.See(t, s.URL(), "200 more requests", func(now page) bool { return w(now) >= before+200 })
	daemon.Term(t)
	for _, fault := range final.Balance() {
		t.Error(fault)
	}

	log := s.arrivals(t)
	records, _ := outside.Records(t, s.Records, false)
	all := s.join(t, log, records)
	arrived := map[string]sent{}
	for _, x := range all {
		if _, twice := arrived[x.ID]; twice {
			t.Errorf("%s was sent twice", x.ID)
		}
		arrived[x.ID] = x
		if late := time.Duration(x.Lateness); late > time.Second {
			t.Errorf("%s was sent %v late", x.ID, late)
		}
		if x.Outcome != "ok" || x.engine.Outcome != sim.OK {
			t.Errorf("%s: want ok, got %s, and %s by the engine", x.ID, x.Outcome, x.engine.Outcome)
		}
	}
	planned := func(e sim.LogEntry) time.Time {
		_, loop, row := outside.Place(t, e.ID)
		return p.At(loop, row)
	}
	var missing []due
	for _, d := range p.Between(planned(log[0]), planned(log[len(log)-1])) {
		if _, ok := arrived[d.RequestID("w")]; !ok {
			missing = append(missing, d)
		}
	}
	inside := len(p.Between(stopAfter, contBefore))
	missed := int(final.Sum("replayd_requests_dropped_total", "missed"))
	t.Logf("stopped for %v: the plan has %d rows in it, %d were not sent, counted as missed %d; steal %v",
		contBefore.Sub(stopAfter).Round(time.Millisecond), inside, len(missing), missed, outside.StealTime()-stolen)
	if missed != len(missing) || len(missing) == 0 {
		t.Errorf(`want reason="missed" to be the %d rows that were not sent, got %d`, len(missing), missed)
	}
	if _, dropped := final.Ended("w"); int(dropped) != missed {
		t.Errorf("want no other drops than %d missed, got %v", missed, dropped)
	}
	if len(missing) == 0 {
		return
	}
	// The requests due in the stop, and at its edges those that the process could not send just before or after it.
	const edge = time.Second
	for _, d := range p.Between(stopAfter, contBefore) {
		if _, ok := arrived[d.RequestID("w")]; ok {
			t.Errorf("row %d was due %v before the end of the stop, and was sent", d.Row, contBefore.Sub(d.At))
		}
	}
	if at := missing[0].At; at.Before(stopBefore.Add(-edge)) {
		t.Errorf("row %d was missed %v before the stop", missing[0].Row, stopBefore.Sub(at))
	}
	if at := missing[len(missing)-1].At; at.After(contAfter.Add(edge)) {
		t.Errorf("row %d was missed %v after the stop", missing[len(missing)-1].Row, at.Sub(contAfter))
	}
	resumed := p.Between(missing[len(missing)-1].At.Add(1), missing[len(missing)-1].At.Add(time.Minute))[0]
	t.Logf("goes on with row %d, due %v after SIGCONT", resumed.Row, resumed.At.Sub(contAfter).Round(time.Microsecond))
	noBurst(t, p, log, contBefore)
	inFlight(t, all, stopBefore, contAfter)
}

// noBurst checks each 100 ms of arrivals after the stop: there may be no more than the plan has for them and for the
// second before, because a row may be a second late.
func noBurst(t *testing.T, p *plan, log []sim.LogEntry, from time.Time) {
	t.Helper()
	const window = 100 * time.Millisecond
	var after []time.Time
	for _, e := range log {
		if at := time.Unix(0, e.Arrival); at.After(from) {
			after = append(after, at)
		}
	}
	busiest, planned := 0, 0
	count := func(begin time.Time, all []time.Time) (n int) {
		for _, at := range all {
			if !at.Before(begin) && at.Before(begin.Add(window)) {
				n++
			}
		}
		return n
	}
	var plans []time.Time
	for _, d := range p.Between(from, after[len(after)-1].Add(time.Second)) {
		plans = append(plans, d.At)
	}
	for _, begin := range plans {
		planned = max(planned, count(begin, plans))
	}
	for _, begin := range after {
		n := count(begin, after)
		busiest = max(busiest, n)
		lower := begin.Add(-time.Second)
		if lower.Before(from) {
			lower = from
		}
		if most := len(p.Between(lower, begin.Add(window))); n > most {
			t.Errorf("%v after the stop: %d requests within %v, the plan has %d until then", begin.Sub(from), n, window, most)
		}
	}
	t.Logf("busiest %v after SIGCONT: %d requests; of the plan: %d", window, busiest, planned)
}

// inFlight compares the times of answers that came while the process was stopped
// with the times at which the engine wrote them. The engine closes an idle
// connection after 5 s: the time of the FIN must not become that of the last chunk.
func inFlight(t *testing.T, all []sent, stop, resume time.Time) {
	t.Helper()
	during, ended, stamped := 0, 0, 0
	for _, x := range all {
		end := time.Unix(0, x.engine.Chunks[len(x.engine.Chunks)-1])
		if x.engine.Arrival > stop.UnixNano() || end.Before(stop) {
			continue
		}
		off := time.Duration(x.Last - end.UnixNano())
		during++
		if end.Before(resume) {
			ended++
		}
		if !x.Kernel {
			continue
		}
		if off.Abs() > time.Second {
			t.Errorf("%s: the last of %d chunks was written %v after SIGSTOP, and received %v later by the record: %+v", x.ID,
				len(x.engine.Chunks), end.Sub(stop), off, x.record)
		}
		stamped++
	}
	t.Logf("%d requests were in flight when it was stopped, %d of them ended before SIGCONT", during, ended)
	if during == 0 || ended == 0 {
		t.Error("want requests that end during the stop, got none")
	}
	if stamped == 0 {
		t.Error("want requests whose last chunk has a stamp of its own, got none")
	}
}
