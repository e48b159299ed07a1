//go:build canary

package canary_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"replayd/bench/lab"

	"replayd/test/outside"
)

// A candidate that hangs fails by its bad requests, and moves no instant of the baseline's.
func TestFreezeFails(t *testing.T) {
	t.Parallel()
	p := newPair(t, 10, nil)
	// A hung server is given up after a minute, the timeout of the first token.
	c := p.compare(t, "freeze", longest+2*time.Minute)
	const healthy = 3 // blocks before the fault
	timer := time.NewTimer(healthy * block)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.Done:
		t.Fatal("the comparison ended before the fault began")
	}
	began := time.Now()
	p.candidate.process.Signal(t, syscall.SIGSTOP)
	outside.UntilIn(t, c.longest, func() error {
		select {
		case <-c.Done:
		default:
			if !strings.Contains(c.Said(t), "stopping: no new requests") {
				return errors.New("want a verdict")
			}
		}
		return nil
	})
	p.candidate.process.Signal(t, syscall.SIGCONT) // the requests in flight have answers
	s := c.wait(t)
	s.want(t, "fail", "bad")
	if s.blocks["ttft"] > healthy {
		t.Errorf("want no latencies of a server that does not answer, got %d blocks of them", s.blocks["ttft"])
	}
	unmoved(t, p.baseline.lateness(t, s.began), began)
}

// An arrival is a request that came to a server some time after its instant.
type arrival struct {
	at    time.Time
	after float64 // µs
}

// lateness compares the arrivals at a server with the plan. The plan begins when the first request would have come, had it been as prompt as the most
// prompt one.
func (s *server) lateness(t *testing.T, since time.Time) []arrival {
	t.Helper()
	var all []arrival
	epoch := time.Time{}
	for place, e := range s.rows(t, since) {
		_, loop, row := outside.Place(t, s.name+"/"+place)
		if loop > 0 {
			t.Fatal("want a trace that is longer than the comparison")
		}
		at := time.Unix(0, e.Arrival)
		begin := at.Add(-time.Duration(row) * spacing)
		if epoch.IsZero() || begin.Before(epoch) {
			epoch = begin
		}
		all = append(all, arrival{at, float64(begin.UnixNano())})
	}
	for i := range all {
		all[i].after = (all[i].after - float64(epoch.UnixNano())) / 1e3
	}
	return all
}

// unmoved checks that requests from an instant on came as promptly as those before, by their medians.
func unmoved(t *testing.T, all []arrival, from time.Time) {
	t.Helper()
	var before, after lab.Sample
	for _, a := range all {
		if a.at.Before(from) {
			before = append(before, a.after)
		} else {
			after = append(after, a.after)
		}
	}
	moved := after.Quantile(0.5) - before.Quantile(0.5)
	t.Logf("from a request's instant to its arrival at the baseline: p50 %.0f µs before, %.0f more with the fault",
		before.Quantile(0.5), moved)
	// A tenth of a spacing is far more than a machine with other work adds, and less than any request adds that waits
	// for another one.
	if len(before) < 10 || len(after) < 10 || !(moved < float64(spacing.Microseconds())/10) {
		t.Errorf("want at least 10 requests at their instants, got %d and %d, the latter %.0f µs later",
			len(before), len(after), moved)
	}
}
