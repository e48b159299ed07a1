//go:build faults

package faults_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"replayd/test/outside"
)

// restart kills the engine and starts it again.
func (s *soak) restart(t *testing.T) {
	t.Helper()
	s.Sim.Signal(t, syscall.SIGKILL)
	s.Sim.Wait(t, 10*time.Second)
	s.StartEngine(t)
}

// reload brings the next configuration: another speed or trace of one workload, or guests that come and go.
func (s *soak) reload(t *testing.T) {
	t.Helper()
	n := s.reloads
	s.bring(t, func(c *course) {
		switch {
		case c.turn > 0: // two of three
			c.on = n%3 != c.turn-1
		case c.name == "changing" && n%2 == 0 && c.on:
			c.speed = 3 - c.speed
		case c.name == "changing" && c.on:
			c.rows = outside.Plain(int(28*soakRate), soakRate, 100+n, soakOutput, uint64(100+n))
			outside.Put(t, c.path, outside.Trace(c.rows))
		default:
			c.on = true
		}
	})
}

// bring changes courses, reloads the daemon, and records from when each change holds.
func (s *soak) bring(t *testing.T, change func(*course)) {
	t.Helper()
	before := map[string]course{}
	for _, c := range s.courses {
		before[c.name] = *c
		change(c)
	}
	s.Write(t, s.yaml())
	s.reloads++
	begin := time.Now()
	outside.Post(t, s.URL()+"/-/reload", http.StatusOK)
	end := time.Now()
	for _, c := range s.courses {
		was := before[c.name]
		switch {
		case !was.on && !c.on:
		case !was.on && c.on: // after its target has answered, for which replayd waits 5 s at most
			var entered time.Time
			outside.Until(t, 6*time.Second, func() error {
				if entered = s.entered(t)[c.name]; entered.Before(begin) {
					return fmt.Errorf("%s: want it to enter a loop", c.name)
				}
				return nil
			})
			c.shifts = append(c.shifts, outside.Shift{From: begin, To: entered, Plan: c.plan()})
		case !c.on:
			c.shifts = append(c.shifts, outside.Shift{From: begin, To: end.Add(time.Second), Plan: c.plan()})
		case was.speed != c.speed || &was.rows[0] != &c.rows[0]: // at one instant
			c.shifts = append(c.shifts, outside.Shift{From: begin.Add(time.Second), To: end.Add(time.Second), Plan: c.plan()})
		}
	}
}

// entered returns the latest time at which each workload logged that it entered its loop: the log has milliseconds.
func (s *soak) entered(t *testing.T) map[string]time.Time {
	t.Helper()
	entered := map[string]time.Time{}
	for line := range strings.Lines(s.daemon.Said(t)) {
		head, tail, ok := strings.Cut(line, `msg="entered loop" workload=`)
		if !ok {
			continue
		}
		stamp, _, _ := strings.Cut(strings.TrimPrefix(head, "time="), " ")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(tail, " ")
		entered[name] = at.Add(time.Millisecond)
	}
	return entered
}

// standing brings all workloads back onto the page with their counts, and nothing due before midnight.
func (s *soak) standing(t *testing.T) outside.Page {
	t.Helper()
	none := filepath.Join(s.Dir, "none.jsonl")
	outside.Put(t, none, outside.Trace([]outside.Row{{Input: 20, Output: 20}}))
	for _, c := range s.courses {
		c.on, c.path, c.every = true, none, 24*time.Hour
	}
	s.Write(t, s.yaml())
	outside.Post(t, s.URL()+"/-/reload", http.StatusOK)
	// A target that had no workload learns its model again. Until
	// then the page lacks what was counted under that model.
	return outside.See(t, s.URL(), "all workloads and their counts, with nothing in flight", totalLimit+30*time.Second, func(p outside.Page) bool {
		for _, c := range s.courses {
			if p.Sum("replayd_requests_total", c.name) == 0 {
				return false
			}
		}
		return p.Sum("replayd_requests_in_flight")+p.Sum("replayd_requests_waiting") == 0
	})
}

// counted compares the counters of finished requests with the records, by workload and outcome.
func (s *soak) counted(t *testing.T, final outside.Page, records []outside.Record) {
	t.Helper()
	more := map[string]float64{}
	for _, c := range s.courses[1:] { // without rest, whose next request may come after the page
		for _, m := range final["replayd_requests_total"].GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["workload"] == c.name {
				more[c.name+" "+labels["outcome"]] += m.GetCounter().GetValue()
			}
		}
	}
	for _, r := range records {
		name, _, _ := outside.Place(t, r.ID)
		if name != "rest" {
			more[name+" "+r.Outcome]--
		}
	}
	for what, n := range more {
		if n != 0 {
			t.Errorf("%s: counted %v times more than there are records", what, n)
		}
	}
}
