package schedule

import (
	"fmt"
	"slices"
	"time"

	"replayd/internal/fault"
	"replayd/internal/scalar"
)

// maxRate is far above what one process can send; at this rate rows still have distinct instants.
const maxRate = 1e6

// maxStages bounds the number of stages.
const maxStages = 1000

// checkRate checks the options that only some arrivals use: rate, stages, burstiness and users.
func (o *Options) checkRate() (f fault.List) {
	switch {
	case !(o.Rate >= 0 && o.Rate <= maxRate): // true for NaN, too
		f.Add("rate", "want 0 to %.0f, got %v", float64(maxRate), o.Rate)
	case !o.byGaps() && o.Arrival != Users && o.Rate != 0:
		f.Add("rate", "needs arrival constant, poisson, gamma or users, got arrival %s", o.Arrival)
	case (o.byGaps() || o.Arrival == Users) && o.Rate == 0 && len(o.Stages) == 0:
		f.Add("rate", "want a number > 0 for arrival %s, got none", o.Arrival)
	}
	switch {
	case o.byGaps():
		f = append(f, o.checkStages()...)
	case len(o.Stages) > 0:
		f.Add("stages", "needs arrival constant, poisson or gamma, got arrival %s", o.Arrival)
	}
	f.If(o.Arrival != Gamma && o.Burstiness != 0 && o.Burstiness != 1,
		"burstiness", "needs arrival gamma, got arrival %s", o.Arrival)
	f.If(o.Arrival == Gamma && !(o.Burstiness >= 0.01 && o.Burstiness <= 1000),
		"burstiness", "want 0.01 to 1000, got %v", o.Burstiness)
	f = append(f, o.checkSessions()...)
	f.If(o.Arrival != Users && o.Users != 0, "users", "needs arrival users, got arrival %s", o.Arrival)
	f.If(o.Arrival == Users && (o.Users < 1 || o.Users > maxUsers),
		"users", "want 1 to %d for arrival users, got %d", maxUsers, o.Users)
	return f
}

func (o *Options) checkStages() (f fault.List) {
	if len(o.Stages) > maxStages {
		f.Add("stages", "want at most %d, got %d", maxStages, len(o.Stages))
		return f
	}
	left := Longest
	for i, s := range o.Stages {
		at := fmt.Sprintf("stages[%d]", i)
		f.If(!(s.Rate >= 0 && s.Rate <= maxRate), at+".rate", "want 0 to %.0f, got %v", float64(maxRate), s.Rate)
		for _, d := range []struct {
			key string
			got time.Duration
		}{{".over", s.Over}, {".hold", s.Hold}} {
			if d.got < 0 || d.got > left {
				f.Add(at+d.key, "want 0s to %v, got %v", left, d.got)
				continue
			}
			left -= d.got
		}
		f.If(i == len(o.Stages)-1 && s.Hold != 0,
			at+".hold", "want none for the last stage, whose rate stays, got %v", s.Hold)
	}
	if len(o.Stages) > 0 && o.Rate == 0 && !slices.ContainsFunc(o.Stages, func(s Stage) bool { return s.Rate != 0 }) {
		f.Add("stages", "want one with a rate above 0, got none")
	}
	return f
}

// maxSessions bounds how many sessions are in progress at once: each holds its rows in memory.
const maxSessions = 1 << 20

// checkSessions checks the options of plans that are read session by session.
func (o *Options) checkSessions() (f fault.List) {
	if o.RateOf != "" {
		f.OneOf("rate_of", string(o.RateOf), string(Requests), string(Starts))
	}
	f.If(o.RateOf == Starts && !o.byGaps(),
		"rate_of", "needs arrival constant, poisson or gamma for %q, got arrival %s", o.RateOf, o.Arrival)
	f.If(o.Arrival != Sessions && o.AtOnce != 0, "sessions_at_once", "needs arrival sessions, got arrival %s", o.Arrival)
	f.If(o.Arrival == Sessions && (o.AtOnce < 1 || o.AtOnce > maxSessions),
		"sessions_at_once", "want 1 to %d for arrival sessions, got %d", maxSessions, o.AtOnce)
	switch s := o.Within; {
	case s == scalar.Within{}:
	case !(s[0] >= 0 && s[0] <= s[1] && s[1] <= 1):
		f.Add("start_within", "want shares of 0 to 1, the first not above the second, got %v to %v", s[0], s[1])
	case o.Arrival != Sessions:
		f.Add("start_within", "needs arrival sessions, got arrival %s", o.Arrival)
	}
	return f
}
