package metrics

import "replayd/internal/measure"

// This file has the series of sessions. A workload has them if its trace has sessions, or once one has begun.
var (
	descSessionsBegun      = desc("sessions_begun_total", "Sessions of which a request fell due.")
	descSessions           = desc("sessions_total", "Sessions by how they ended.", "outcome")
	descSessionsInProgress = desc("sessions_in_progress", "Sessions that have begun and not ended.")
	descSessionsGood       = desc("sessions_good_total", "Ok sessions that kept the bound on the makespan.")
	descSessionTime        = desc("session_time_seconds_total", "Time of ok sessions along their critical path, by part; the parts add up to the makespans.", "part")
	descSessionThreshold   = desc("session_slo_threshold_seconds", "The configured bound on the makespan of a session: the most that is within it.")
	descSessionObjective   = desc("session_slo_objective_ratio", "The share of sessions that should be good.")
)

// SessionObjective is the share of sessions that should be good.
const SessionObjective = 0.9

// sessionCounts counts sessions. begun = ended + those in progress holds at every scrape.
type sessionCounts struct {
	begun                    int64
	ended                    [measure.NumSessionOutcomes]int64
	good                     int64
	requests, prompt, cached int64 // of ok sessions; tokens of those whose server reports cached ones
	time                     measure.SessionTime
}

var allSessionOutcomes = measure.SessionOutcomes()

// hasSessions reports whether the series of sessions are on the page.
func (c *counts) hasSessions() bool { return c.playback.trace.Sessions > 0 || c.sessions.begun > 0 }

// SessionBegun counts a session that has begun.
func (w *Workload) SessionBegun() {
	w.move(1, closed, inProgress, func(c *counts) { c.sessions.begun++ })
}

// SessionEnded counts a session that has ended, and its requests and time if it is ok. It keeps no reference to it.
func (w *Workload) SessionEnded(s *measure.Session) {
	outcome := indexOf(allSessionOutcomes, s.Outcome)
	good := w.options.Sessions.Good(s)
	ratio, reported := s.CachedRatio()
	of := w.move(1, inProgress, closed, func(c *counts) {
		n := &c.sessions
		n.ended[outcome]++
		if good {
			n.good++
		}
		if s.Outcome != measure.SessionOK {
			return
		}
		n.requests += int64(s.Requests)
		n.time = n.time.Add(s.Time)
		if reported {
			n.prompt, n.cached = n.prompt+int64(s.Prompt), n.cached+int64(s.Cached)
		}
	})
	if s.Outcome != measure.SessionOK {
		return
	}
	of.hists[histMakespan].Observe(s.Makespan().Seconds())
	of.hists[histSessionRequests].Observe(float64(s.Requests))
	if reported {
		of.hists[histCachedRatio].Observe(ratio)
	}
}

func (c *counts) collectSessions(counter, gauge shower) {
	n := &c.sessions
	counter(descSessionsBegun, float64(n.begun))
	for i, o := range allSessionOutcomes {
		counter(descSessions, float64(n.ended[i]), string(o))
	}
	gauge(descSessionsInProgress, float64(c.open[inProgress]))
	counter(descSessionsGood, float64(n.good))
	for p, d := range n.time {
		counter(descSessionTime, d.Seconds(), measure.SessionPart(p).String())
	}
}

func (n *sessionCounts) ledger(open int64) measure.Sessions {
	return measure.Sessions{
		Begun: n.begun, InProgress: open, Outcomes: byName(allSessionOutcomes, n.ended[:]), Good: n.good,
		Requests: n.requests, Prompt: n.prompt, Cached: n.cached, Time: n.time,
	}
}
