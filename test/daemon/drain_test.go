//go:build daemon

package daemon_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"replayd/internal/sim"

	"replayd/test/outside"
)

// Streams that last some seconds: the first rows of a trace. Its later rows are short.
const (
	longStreams = 50
	longTokens  = 250
)

// A draining is a daemon with its long streams in flight.
type draining struct {
	*stage
	daemon *outside.Process
}

func newDraining(t *testing.T, drain time.Duration) *draining {
	t.Helper()
	d := &draining{stage: newStage(t, "--ttft", "50ms", "--itl", "30ms", "--chunk-tokens", "1")}
	var rows []row
	for i := range longStreams {
		rows = append(rows, row{Timestamp: int64(i * 10), Input: 100, Output: longTokens})
	}
	for at := int64(longStreams * 10); at < 60_000; at += 50 {
		rows = append(rows, row{Timestamp: at, Input: 100, Output: 10})
	}
	path := filepath.Join(d.Dir, "trace.jsonl")
	outside.Put(t, path, outside.Trace(rows))
	d.write(t, fmt.Sprintf(`drain: %v
records: {path: %q}
workloads: [{name: w, trace: {path: %q}, repeat: {mode: once}}]
`, drain, d.Records, path))
	d.daemon, _ = d.Serve(t)
	outside.See(t, d.URL(), "all long streams in flight, short ones that ended", 20*time.Second, func(p page) bool {
		return p.Sum("replayd_requests_in_flight") >= longStreams && p.Sum("replayd_requests_total", "ok") >= 10
	})
	return d
}

// sum counts outcomes by the engine's log and by the records, and compares both.
func (d *draining) sum(t *testing.T, signal time.Time) (byEngine, byRecord map[string]int) {
	t.Helper()
	log := d.arrivals(t)
	records, _ := outside.Records(t, d.Records, false)
	byEngine, byRecord = map[string]int{}, map[string]int{}
	long := 0
	var last, end time.Time
	for _, x := range d.join(t, log, records) {
		byEngine[x.engine.Outcome]++
		byRecord[x.Outcome]++
		if ok := x.Outcome == "ok"; ok != (x.engine.Outcome == sim.OK) || !ok && x.Outcome != "aborted" {
			t.Errorf("%s: ended %s by its record, %s by the engine", x.ID, x.Outcome, x.engine.Outcome)
		}
		if x.Row < longStreams {
			long++
		}
		if at := time.Unix(0, x.engine.Arrival); at.After(last) {
			last = at
		}
		if at := time.Unix(0, x.engine.End); at.After(end) {
			end = at
		}
	}
	if long != longStreams {
		t.Errorf("want %d long streams, got %d", longStreams, long)
	}
	t.Logf("the last request reached the engine %v after the signal, the last one ended %v after it, the process %v after it; records: %v",
		last.Sub(signal).Round(time.Microsecond), end.Sub(signal).Round(time.Millisecond), d.daemon.Ended.Sub(signal).Round(time.Millisecond), byRecord)
	if last.After(signal.Add(time.Second)) { // 20 rows are due in that second
		t.Errorf("want nothing new after the signal, got a request %v after it", last.Sub(signal))
	}
	return byEngine, byRecord
}

// After SIGTERM no new request is sent, all requests in flight end ok, and the metrics page is served until then.
func TestDrain(t *testing.T) {
	const drain = 30 * time.Second
	d := newDraining(t, drain)
	signal, _ := d.daemon.Signal(t, syscall.SIGTERM)
	// Until the process has ended, a scrape may fail only when nothing is in flight any more.
	var page page
	var answered, refused time.Time
	scrapes := 0
	outside.Until(t, drain+5*time.Second, func() error {
		select {
		case <-d.daemon.Done:
			return nil
		default:
		}
		p, err := outside.Scrape(t.Context(), d.URL())
		switch {
		case err == nil && !refused.IsZero():
			t.Errorf("a scrape was refused at %v, and one was answered after it", refused)
		case err == nil:
			page, answered = p, time.Now()
			scrapes++
			for _, fault := range p.Balance() {
				t.Error(fault)
			}
		case refused.IsZero():
			refused = time.Now()
		}
		return errors.New("want the end of the drain")
	})
	if d.daemon.Err != nil {
		t.Errorf("want exit 0, got %v", d.daemon.Err)
	}
	took := d.daemon.Ended.Sub(signal)
	if took > drain {
		t.Errorf("want the end within %v, got %v", drain, took)
	}
	byEngine, byRecord := d.sum(t, signal)
	if byEngine[sim.OK] != byRecord["ok"] || len(byRecord) != 1 {
		t.Errorf("want all ok, got %v by the engine, %v by the records", byEngine, byRecord)
	}
	t.Logf("%d scrapes in the drain, the last one answered %v before the end: %v in flight, %v ok, %v dropped as shutdown", scrapes,
		d.daemon.Ended.Sub(answered).Round(time.Millisecond), page.Sum("replayd_requests_in_flight"), page.Sum("replayd_requests_total", "ok"),
		page.Sum("replayd_requests_dropped_total", "shutdown"))
	if left := d.daemon.Ended.Sub(answered); left > time.Second {
		t.Errorf("want /metrics until the end, got no answer for the last %v", left)
	}
}

// A request that has not ended within the drain is cut off and counted as aborted.
func TestDrainTooShort(t *testing.T) {
	const drain = 2 * time.Second
	d := newDraining(t, drain)
	signal, _ := d.daemon.Signal(t, syscall.SIGTERM)
	d.daemon.Wait(t, drain+10*time.Second)
	d.aborted(t, signal, drain)
}

// A second signal ends the daemon at once.
func TestSecondSignal(t *testing.T) {
	d := newDraining(t, time.Minute)
	d.daemon.Signal(t, syscall.SIGTERM)
	outside.See(t, d.URL(), "a drain without short streams", 10*time.Second, func(p page) bool {
		return p.Sum("replayd_requests_in_flight") == longStreams
	})
	signal, _ := d.daemon.Signal(t, syscall.SIGTERM)
	d.daemon.Wait(t, 10*time.Second)
	d.aborted(t, signal, 0)
}

func (d *draining) aborted(t *testing.T, signal time.Time, drain time.Duration) {
	t.Helper()
	if took := d.daemon.Ended.Sub(signal); took < drain || took > drain+3*time.Second {
		t.Errorf("want the end %v after the signal, got %v", drain, took)
	}
	byEngine, byRecord := d.sum(t, signal)
	if byRecord["aborted"] != longStreams || byEngine[sim.Gone] != longStreams {
		t.Errorf("want %d aborted, got %v by the engine, %v by the records", longStreams, byEngine, byRecord)
	}
	t.Logf("how the process ended: %v", d.daemon.Cmd.ProcessState)
}
