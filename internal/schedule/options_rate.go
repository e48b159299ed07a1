package schedule

import (
	"fmt"
	"slices"
	"time"
)

// mostRate is far above what a process sends, and keeps the instants of rows apart.
const mostRate = 1e6

// mostStages bounds the pieces of a rate.
const mostStages = 1000

// CheckRate holds what only some arrivals have against the arrival: rate, stages, burstiness and users. It needs no source.
func (o *Options) CheckRate() (faults []Fault) {
	add := func(key, format string, args ...any) { faults = append(faults, faulty(key, format, args...)) }
	gaps := o.Arrival == Constant || o.Arrival == Poisson || o.Arrival == Gamma
	switch {
	case !(o.Rate >= 0 && o.Rate <= mostRate): // in this form NaN is refused too
		add("rate", "want 0 to %.0f, got %v", float64(mostRate), o.Rate)
	case !gaps && o.Arrival != Users && o.Rate != 0:
		add("rate", "is for the arrivals constant, poisson, gamma and users, got %v with arrival %s", o.Rate, o.Arrival)
	case (gaps || o.Arrival == Users) && o.Rate == 0 && len(o.Stages) == 0:
		add("rate", "want a number > 0 for arrival %s, got none", o.Arrival)
	}
	switch {
	case gaps:
		faults = append(faults, o.checkStages()...)
	case len(o.Stages) > 0:
		add("stages", "is for the arrivals constant, poisson and gamma, got arrival %s", o.Arrival)
	}
	switch {
	case o.Arrival != Gamma && o.Burstiness != 0 && o.Burstiness != 1:
		add("burstiness", "is for arrival gamma, got %v with arrival %s", o.Burstiness, o.Arrival)
	case o.Arrival == Gamma && !(o.Burstiness >= 0.01 && o.Burstiness <= 1000):
		add("burstiness", "want 0.01 to 1000, got %v", o.Burstiness)
	}
	switch {
	case o.Arrival != Users && o.Users != 0:
		add("users", "is for arrival users, got %d with arrival %s", o.Users, o.Arrival)
	case o.Arrival == Users && (o.Users < 1 || o.Users > mostUsers):
		add("users", "want 1 to %d for arrival users, got %d", mostUsers, o.Users)
	}
	return faults
}

func (o *Options) checkStages() (faults []Fault) {
	add := func(key, format string, args ...any) { faults = append(faults, faulty(key, format, args...)) }
	if len(o.Stages) > mostStages {
		add("stages", "want at most %d, got %d", mostStages, len(o.Stages))
		return faults
	}
	left := Longest
	for i, s := range o.Stages {
		at := fmt.Sprintf("stages[%d]", i)
		if !(s.Rate >= 0 && s.Rate <= mostRate) {
			add(at+".rate", "want 0 to %.0f, got %v", float64(mostRate), s.Rate)
		}
		for _, d := range []struct {
			key string
			got time.Duration
		}{{".over", s.Over}, {".hold", s.Hold}} {
			if d.got < 0 || d.got > left {
				add(at+d.key, "want 0s to %v, got %v", left, d.got)
				continue
			}
			left -= d.got
		}
		if i == len(o.Stages)-1 && s.Hold != 0 {
			add(at+".hold", "want none for the last stage, whose rate stays, got %v", s.Hold)
		}
	}
	if len(o.Stages) > 0 && o.Rate == 0 && !slices.ContainsFunc(o.Stages, func(s Stage) bool { return s.Rate != 0 }) {
		add("stages", "want one with a rate above 0, got none")
	}
	return faults
}

// rateFaults are those of CheckRate, as New joins them with others.
func (o *Options) rateFaults() (errs []error) {
	for _, f := range o.CheckRate() {
		errs = append(errs, f)
	}
	return errs
}

// checkEnd holds what ends a loop against the source.
func (o *Options) checkEnd(src Source) (errs []error) {
	add := func(key, format string, args ...any) { errs = append(errs, faulty(key, format, args...)) }
	if o.Rows < 0 || o.Rows > mostRows {
		add("rows", "want 0 to %d, got %d", mostRows, o.Rows)
	}
	if o.Duration < 0 || o.Duration > Longest {
		add("duration", "want 0s to %v, got %v", Longest, o.Duration)
	}
	if src.Endless && o.Rows == 0 && o.Duration == 0 && o.Arrival != Concurrency {
		add("rows, duration", "want one of them for rows without an end with arrival %q, got neither", o.Arrival)
	}
	return errs
}
