package schedule

import (
	"fmt"
	"slices"
	"time"
)

// mostRate is far above what one process can send; at this rate rows still have distinct instants.
const mostRate = 1e6

// mostStages bounds the number of stages.
const mostStages = 1000

// checkRate checks the options that only some arrivals use: rate, stages, burstiness and users.
func (o *Options) checkRate() (f Faults) {
	switch {
	case !(o.Rate >= 0 && o.Rate <= mostRate): // true for NaN, too
		f.add("rate", "want 0 to %.0f, got %v", float64(mostRate), o.Rate)
	case !o.byGaps() && o.Arrival != Users && o.Rate != 0:
		f.add("rate", "needs arrival constant, poisson, gamma or users, got arrival %s", o.Arrival)
	case (o.byGaps() || o.Arrival == Users) && o.Rate == 0 && len(o.Stages) == 0:
		f.add("rate", "want a number > 0 for arrival %s, got none", o.Arrival)
	}
	switch {
	case o.byGaps():
		f = append(f, o.checkStages()...)
	case len(o.Stages) > 0:
		f.add("stages", "needs arrival constant, poisson or gamma, got arrival %s", o.Arrival)
	}
	switch {
	case o.Arrival != Gamma && o.Burstiness != 0 && o.Burstiness != 1:
		f.add("burstiness", "needs arrival gamma, got arrival %s", o.Arrival)
	case o.Arrival == Gamma && !(o.Burstiness >= 0.01 && o.Burstiness <= 1000):
		f.add("burstiness", "want 0.01 to 1000, got %v", o.Burstiness)
	}
	f = append(f, o.checkSessions()...)
	switch {
	case o.Arrival != Users && o.Users != 0:
		f.add("users", "needs arrival users, got arrival %s", o.Arrival)
	case o.Arrival == Users && (o.Users < 1 || o.Users > mostUsers):
		f.add("users", "want 1 to %d for arrival users, got %d", mostUsers, o.Users)
	}
	return f
}

func (o *Options) checkStages() (f Faults) {
	if len(o.Stages) > mostStages {
		f.add("stages", "want at most %d, got %d", mostStages, len(o.Stages))
		return f
	}
	left := Longest
	for i, s := range o.Stages {
		at := fmt.Sprintf("stages[%d]", i)
		if !(s.Rate >= 0 && s.Rate <= mostRate) {
			f.add(at+".rate", "want 0 to %.0f, got %v", float64(mostRate), s.Rate)
		}
		for _, d := range []struct {
			key string
			got time.Duration
		}{{".over", s.Over}, {".hold", s.Hold}} {
			if d.got < 0 || d.got > left {
				f.add(at+d.key, "want 0s to %v, got %v", left, d.got)
				continue
			}
			left -= d.got
		}
		if i == len(o.Stages)-1 && s.Hold != 0 {
			f.add(at+".hold", "want none for the last stage, whose rate stays, got %v", s.Hold)
		}
	}
	if len(o.Stages) > 0 && o.Rate == 0 && !slices.ContainsFunc(o.Stages, func(s Stage) bool { return s.Rate != 0 }) {
		f.add("stages", "want one with a rate above 0, got none")
	}
	return f
}
