package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"replayd/internal/config"
	"replayd/internal/daemon"
	"replayd/internal/measure"
	"replayd/internal/number"
	"replayd/internal/result"
)

// judge returns the error of requests that were not cut short; nil: they were served as required. missed says how the
// attainment missed least.
func judge(l measure.Ledger, least float64, missed func() string) error {
	switch share, _ := l.Attainment(); {
	case l.Outcomes[measure.OK] == 0:
		return errors.New(strings.TrimSuffix("no request ended ok: "+result.NotOK(l), ": "))
	case unmeasured(l, least):
		return &exitError{exitMissed, fmt.Errorf("not measured: the time between tokens of %d of %d ok answers "+
			"may be on either side of its bound, because one read held much of the answer: %s",
			l.Unjudged, l.Outcomes[measure.OK], result.CoalescedCauses)}
	case share < least:
		return &exitError{exitMissed, errors.New("slo missed: " + missed())}
	}
	return nil
}

// unmeasured reports whether over 5 % of the ok requests are not judged, so that the run may have reached the required
// attainment or not.
func unmeasured(l measure.Ledger, least float64) bool {
	most := float64(l.Good + l.Unjudged) // if all of them were good
	return least > 0 && 20*l.Unjudged > l.Outcomes[measure.OK] && most >= least*float64(l.Expected)
}

// verdicts are those on the workloads of a daemon that has ended by itself or was stopped before.
type verdicts struct {
	begun bool // a request may have been sent
	code  int  // that of a stop, else of a failure, else of a missed SLO
	said  []error
}

// add judges a workload as run does with --slo, and --min-goodput set to the objective.
func (v *verdicts) add(ctx context.Context, of config.Workload, l measure.Ledger, early error) {
	least := 0.0
	if len(of.SLO.Bounds.Levels()) > 0 {
		least = of.SLO.Objective
	}
	verdict, code := early, exitFailed
	if s := stopped(ctx); s != nil && errors.Is(early, daemon.ErrCut) {
		done := number.Count(int(l.Finished()), "request")
		verdict = &exitError{s.code(), fmt.Errorf("cut short by %s after %s", s.name(), done)}
	} else if early == nil {
		verdict = judge(l, least, func() string {
			return fmt.Sprintf("%d of %d requests were good, want at least %v", l.Good, l.Judged(), least)
		})
	}
	if verdict == nil {
		return
	}
	if with, ok := errors.AsType[*exitError](verdict); ok {
		code = with.code
	}
	if v.code == exitDone || v.code == exitMissed || code > exitSignal {
		v.code = code
	}
	v.said = append(v.said, fmt.Errorf("workload %s: %w", of.Name, verdict))
}

// err returns the error of a daemon that has ended with err.
func (v *verdicts) err(ctx context.Context, err error) error {
	s := stopped(ctx)
	switch {
	case err != nil:
		return err
	case !v.begun && s != nil:
		return &exitError{s.code(), fmt.Errorf("%w before anything was sent", s)}
	case len(v.said) == 0:
		return nil
	}
	return &exitError{v.code, errors.Join(v.said...)}
}
