package metrics

import (
	"slices"

	"replayd/internal/measure"

	"github.com/prometheus/client_golang/prometheus"
)

// This file has the series of sessions. A workload has them if its trace has sessions, or once one has begun.
var (
	descSessionsBegun      = desc("sessions_begun_total", "Sessions of which a request fell due.")
	descSessions           = desc("sessions_total", "Sessions by how they ended.", "outcome")
	descSessionsInProgress = desc("sessions_in_progress", "Sessions that have begun and not ended.")
	descSessionsGood       = desc("sessions_good_total", "Ok sessions that kept the bound on the makespan.")
	descSessionTime        = desc("session_time_seconds_total", "Time of ok sessions along their critical path, by part; the parts add up to the makespans.", "part")
	descSessionThreshold   = desc("session_slo_threshold_seconds", "The configured bound on the makespan of a session: the most that is within it.")
	descSessionObjective   = desc("session_slo_objective_ratio", "The configured share of sessions that should be good.")
)

// A SessionSLO is the service level of sessions.
type SessionSLO struct {
	measure.SessionSLO
	Objective float64 // share of sessions that should be good, greater than 0 and less than 1
}

func (b SessionSLO) collect(gauge func(d *prometheus.Desc, v float64, extra ...string)) {
	if b.Makespan > 0 {
		gauge(descSessionThreshold, b.Makespan.Seconds())
	}
	gauge(descSessionObjective, b.Objective)
}

// sessionCounts counts sessions. begun = ended + inProgress holds at every scrape.
type sessionCounts struct {
	begun, inProgress        int64
	ended                    [measure.NumSessionOutcomes]int64
	good                     int64
	requests, prompt, cached int64 // of ok sessions; tokens of those whose server reports cached ones
	time                     measure.SessionTime
}

var allSessionOutcomes = measure.SessionOutcomes()

// hasSessions reports whether the series of sessions are on the page.
func (c *counts) hasSessions() bool { return c.trace.Sessions > 0 || c.sessions.begun > 0 }

// SessionBegun counts a session that has begun.
func (w *Workload) SessionBegun() {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.parts[len(w.parts)-1]
	p.sessions++
	p.s.change(func(c *counts) {
		c.sessions.begun++
		c.sessions.inProgress++
	})
}

// SessionEnded counts a session that has ended, and its requests and time if it is ok. It keeps no reference to it.
func (w *Workload) SessionEnded(s *measure.Session) {
	outcome := placeOf(allSessionOutcomes, s.Outcome)
	good := w.options.Sessions.Good(s)
	ratio, told := s.CachedRatio()
	of := w.sessionLands()
	of.change(func(c *counts) {
		n := &c.sessions
		n.inProgress--
		n.ended[outcome]++
		if good {
			n.good++
		}
		if s.Outcome != measure.SessionOK {
			return
		}
		n.requests += int64(s.Requests)
		n.time = n.time.Add(s.Time)
		if told {
			n.prompt, n.cached = n.prompt+int64(s.Prompt), n.cached+int64(s.Cached)
		}
	})
	if s.Outcome != measure.SessionOK {
		return
	}
	of.hists[histMakespan].Observe(s.Makespan().Seconds())
	of.hists[histSessionRequests].Observe(float64(s.Requests))
	if told {
		of.hists[histCachedRatio].Observe(ratio)
	}
}

// sessionLands removes one session from the earliest part with a session in progress, and returns the series of the part.
func (w *Workload) sessionLands() *series {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.parts[:len(w.parts)-1], func(p *part) bool { return p.sessions > 0 })
	if i < 0 {
		i = len(w.parts) - 1
	}
	w.parts[i].sessions--
	return w.parts[i].s
}

func (s *series) collectSessions(ch chan<- prometheus.Metric, n *sessionCounts) {
	counter := func(d *prometheus.Desc, v float64, extra ...string) {
		ch <- prometheus.MustNewConstMetricWithCreatedTimestamp(d, prometheus.CounterValue, v, s.created, slices.Concat(s.values, extra)...)
	}
	counter(descSessionsBegun, float64(n.begun))
	for i, o := range allSessionOutcomes {
		counter(descSessions, float64(n.ended[i]), string(o))
	}
	ch <- prometheus.MustNewConstMetric(descSessionsInProgress, prometheus.GaugeValue, float64(n.inProgress), s.values...)
	counter(descSessionsGood, float64(n.good))
	for p, d := range n.time {
		counter(descSessionTime, d.Seconds(), measure.SessionPart(p).String())
	}
}

func (n *sessionCounts) ledger() measure.Sessions {
	return measure.Sessions{
		Begun: n.begun, InProgress: n.inProgress, Outcomes: byName(allSessionOutcomes, n.ended[:]), Good: n.good,
		Requests: n.requests, Prompt: n.prompt, Cached: n.cached, Time: n.time,
	}
}
