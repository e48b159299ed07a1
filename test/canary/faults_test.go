//go:build canary

package canary_test

import (
	"fmt"
	"math"
	"syscall"
	"testing"
	"time"

	"replayd/bench/lab"

	"replayd/test/outside"
)

// A fault is something that is wrong with the candidate for a while. It lasts until over is closed, and then the candidate is well again.
type fault struct {
	name string
	last func(t *testing.T, s *server, over <-chan struct{})
}

func faults() []fault {
	return []fault{
		{"crash loop", func(t *testing.T, s *server, over <-chan struct{}) {
			for cycle := block(t) / 2; ; s.begin(t) { // a life lasts for 7/10 of a cycle
				if !within(over, cycle*7/10) {
					return
				}
				s.crash()
				if !within(over, cycle*3/10) {
					s.start(t)
					return
				}
			}
		}},
		{"freeze", func(t *testing.T, s *server, over <-chan struct{}) {
			s.process.Signal(t, syscall.SIGSTOP)
			<-over
			s.process.Signal(t, syscall.SIGCONT)
		}},
		{"refused connections", func(t *testing.T, s *server, over <-chan struct{}) {
			s.crash()
			<-over
			s.start(t)
		}},
	}
}

// within waits and says whether over was still open by then.
func within(over <-chan struct{}, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-over:
		return false
	case <-timer.C:
		return true
	}
}

// crash ends the server as kill -9 does.
func (s *server) crash() {
	_ = s.process.Cmd.Process.Kill()
	<-s.process.Done
}

// A candidate that crashes again and again, hangs, or is not there fails by its bad requests.
func TestFaultsFail(t *testing.T) {
	t.Parallel()
	for i, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, 10+uint64(i), nil)
			// A hung server is given up after a minute, the timeout of the first token.
			c := p.compare(t, f.name, longest(t)+2*time.Minute)
			const healthy = 3 // blocks before the fault
			if !within(c.Done, healthy*block(t)) {
				t.Fatal("the comparison ended before the fault began")
			}
			began := time.Now()
			f.last(t, p.candidate, c.decided(t)) // then the requests in flight have answers
			s := c.wait(t)
			s.want(t, "fail", "bad")
			if s.blocks["ttft"] > healthy && f.name != "crash loop" {
				t.Errorf("want no latencies of a server that does not answer, got %d blocks of them", s.blocks["ttft"])
			}
			unmoved(t, c.name, p.baseline.lateness(t, s.began), []stretch{{"before", s.began, began}, {"with the fault", began, s.end}})
		})
	}
}

// The instants of the baseline's requests do not move while the candidate is ill, nor when it is well again.
func TestFaultsMoveNoInstant(t *testing.T) {
	t.Parallel()
	length := outside.Knob(t, "CANARY_FAULT", 8*time.Second, time.ParseDuration)
	p := newPair(t, 20, nil)
	all := faults()
	// This comparison decides nothing: it needs more evidence than there are blocks, and no excess is too great.
	c := p.compare(t, "three faults in turn", time.Duration(2*len(all)+1)*(length+2*time.Second),
		"--alpha", "1e-9", "--tolerance-bad", "1", "--tolerance-queued", "1", "--tolerance-tail", "1")
	var stretches []stretch
	calm := func(name string) {
		from := time.Now()
		if !within(c.Done, length) {
			t.Fatal("the comparison has ended")
		}
		stretches = append(stretches, stretch{name, from, time.Now()})
	}
	calm("before")
	for _, f := range all {
		from, over := time.Now(), make(chan struct{})
		time.AfterFunc(length, func() { close(over) })
		f.last(t, p.candidate, over)
		stretches = append(stretches, stretch{f.name, from, time.Now()})
		calm("after " + f.name)
	}
	s := c.wait(t)
	s.want(t, "undecided", "")
	unmoved(t, c.name, p.baseline.lateness(t, s.began), stretches)
	l := p.read(t, s.began)
	l.equalBodies(t)
	t.Logf("%d rows reached the baseline alone, %d the candidate alone", l.onlyBaseline, l.onlyOther)
	if rows := len(l.pairs) + l.onlyBaseline; s.pairs+s.void < rows-1 || s.pairs+s.void > rows {
		t.Errorf("the baseline got %d rows, the table has %d pairs", rows, s.pairs+s.void)
	}
}

// A stretch is a part of a comparison.
type stretch struct {
	name     string
	from, to time.Time
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

// unmoved shows the figures of stretches and checks that their medians are that of the first one.
func unmoved(t *testing.T, name string, all []arrival, stretches []stretch) {
	t.Helper()
	table := &lab.Table{Title: name + ": from a request's instant to its arrival at the baseline, µs.", Head: []string{"", "requests", "p50", "p99"}}
	before := math.NaN()
	for i, x := range stretches {
		var s lab.Sample
		for _, a := range all {
			if !a.at.Before(x.from) && a.at.Before(x.to) {
				s = append(s, a.after)
			}
		}
		p50 := s.Quantile(0.5)
		if i == 0 {
			before = p50
		}
		table.Add(x.name, fmt.Sprint(len(s)), lab.Number(p50), lab.Number(s.Quantile(0.99)))
		// A tenth of a spacing is far more than a machine with other work adds, and less than any request adds that waits for another one.
		if len(s) < 10 || !(p50-before < float64(spacing.Microseconds())/10) {
			t.Errorf("%s: want at least 10 requests at their instants, got %d that are %.0f µs later than before", x.name, len(s), p50-before)
		}
	}
	show(t, table)
}
