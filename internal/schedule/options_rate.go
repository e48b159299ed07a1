package schedule

import (
	"fmt"
	"time"
)

// mostRate is far above what a process sends, and keeps the instants of rows apart.
const mostRate = 1e6

// mostStages bounds the pieces of a rate.
const mostStages = 1000

// checkRate holds what only some arrivals have against the arrival.
func (o *Options) checkRate(src Source) (errs []error) {
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	none := func(key string, given bool, got any) {
		if given {
			fault("%s: want none with arrival %q, got %v", key, o.Arrival, got)
		}
	}
	gaps := o.Arrival == Constant || o.Arrival == Poisson || o.Arrival == Gamma
	switch {
	case !gaps && o.Arrival != Users:
		none("rate", o.Rate != 0, o.Rate)
	case len(o.Stages) > 0 && !(o.Rate >= 0 && o.Rate <= mostRate):
		fault("rate: want 0 to %v requests per second, got %v", float64(mostRate), o.Rate)
	case len(o.Stages) == 0 && !(o.Rate > 0 && o.Rate <= mostRate):
		fault("rate: want more than 0 and at most %v requests per second with arrival %q, got %v", float64(mostRate), o.Arrival, o.Rate)
	}
	if gaps {
		errs = append(errs, o.checkStages()...)
	} else {
		none("stages", len(o.Stages) > 0, len(o.Stages))
	}
	switch {
	case o.Arrival != Gamma:
		none("burstiness", o.Burstiness != 0 && o.Burstiness != 1, o.Burstiness)
	case !(o.Burstiness >= 0.01 && o.Burstiness <= 1000):
		fault("burstiness: want 0.01 to 1000, got %v", o.Burstiness)
	}
	switch {
	case o.Arrival != Users:
		none("users", o.Users != 0, o.Users)
	case o.Users < 1 || o.Users > mostUsers:
		fault("users: want 1 to %d, got %d", mostUsers, o.Users)
	}
	if o.Rows < 0 || o.Rows > mostRows {
		fault("rows: want 0 to %d, got %d", mostRows, o.Rows)
	}
	if o.Duration < 0 || o.Duration > Longest {
		fault("duration: want 0s to %v, got %v", Longest, o.Duration)
	}
	if src.Endless && o.Rows == 0 && o.Duration == 0 && o.Arrival != Concurrency {
		fault("rows, duration: want one of them for rows without an end with arrival %q, got neither", o.Arrival)
	}
	return errs
}

func (o *Options) checkStages() (errs []error) {
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(o.Stages) > mostStages {
		fault("stages: want at most %d, got %d", mostStages, len(o.Stages))
		return errs
	}
	left, most := Longest, o.Rate
	for i, s := range o.Stages {
		at := fmt.Sprintf("stages[%d]", i)
		if !(s.Rate >= 0 && s.Rate <= mostRate) {
			fault("%s.rate: want 0 to %v requests per second, got %v", at, float64(mostRate), s.Rate)
		}
		most = max(most, s.Rate)
		for _, d := range []struct {
			key string
			got time.Duration
		}{{"over", s.Over}, {"hold", s.Hold}} {
			if d.got < 0 || d.got > left {
				fault("%s.%s: want 0s to %v, got %v", at, d.key, left, d.got)
				continue
			}
			left -= d.got
		}
		if i == len(o.Stages)-1 && s.Hold != 0 {
			fault("%s.hold: want none for the last stage, whose rate stays, got %v", at, s.Hold)
		}
	}
	if most == 0 && len(o.Stages) > 0 {
		fault("stages: want one with a rate above 0, got none")
	}
	return errs
}
