package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"replayd/internal/config"
)

// takeTurnDelays changes the delays between turns. AIPerf's cap of 0 seconds means none, and not no limit.
func (o *Flags) takeTurnDelays(given *pflag.FlagSet) {
	a, d := &o.Aliases, &o.Workload.TurnDelay
	if given.Changed("conversation-turn-delay-ratio") {
		d.Scale = a.delayRatio
	}
	if given.Changed("inter-turn-delay-cap-seconds") {
		d.Max = config.Duration(a.delayCap)
	}
	if given.Changed("inter-turn-delay-cap-seconds") && a.delayCap == 0 || a.noDelays && !a.fixedSchedule {
		d.Scale = 0
	}
}

// takeStarts determines where the first sessions begin.
func (o *Flags) takeStarts(given *pflag.FlagSet, fault faults) {
	a := &o.Aliases
	if !given.Changed("trajectory-start-min-ratio") && !given.Changed("trajectory-start-max-ratio") {
		return
	}
	if !(a.startFrom >= 0 && a.startFrom <= a.startTo && a.startTo <= 1) {
		fault("--trajectory-start-min-ratio", fmt.Errorf("want 0 to --trajectory-start-max-ratio, which is at most 1, got %v and %v", a.startFrom, a.startTo))
		return
	}
	o.Workload.Within = config.Within{a.startFrom, a.startTo}
}

// turnsInAll returns the number of requests in --num-sessions conversations.
func (o *Flags) turnsInAll(given *pflag.FlagSet, fault faults) int {
	n, s, set := o.Aliases.sessions, o.Workload.Synthetic, o.Workload.Dataset
	switch {
	case given.Changed("request-count"):
		fault("--num-sessions", errors.New("contradicts --request-count: want one of them"))
	case n < 1 || n > unlimited:
		fault("--num-sessions", fmt.Errorf("want an integer from 1 to %d, got %d", unlimited, n))
	case set.Format != "" && set.Format != "multi_turn":
		return n
	case !s.Given() || s.TurnsStddev > 0 || s.Turns != math.Trunc(s.Turns) || s.Turns > unlimited:
		fault("--num-sessions", errors.New("needs conversations of one length (--session-turns-mean N, no --session-turns-stddev): else give --request-count"))
	default:
		return n * max(1, int(s.Turns))
	}
	return 0
}

// takeTiming determines when rows are due, and how many there are.
func (o *Flags) takeTiming(given *pflag.FlagSet, fault faults) {
	a, w := &o.Aliases, &o.Workload
	o.takeStarts(given, fault)
	modes := map[string]bool{"--fixed-schedule": a.fixedSchedule, "--request-rate": a.requestRate != "", "--user-centric-rate": given.Changed("user-centric-rate")}
	for _, pair := range [][2]string{{"--fixed-schedule", "--user-centric-rate"}, {"--fixed-schedule", "--request-rate"}, {"--request-rate", "--user-centric-rate"}} {
		if modes[pair[0]] && modes[pair[1]] {
			fault(pair[1], fmt.Errorf("contradicts %s: want one way to say when requests are due", pair[0]))
		}
	}
	for _, flag := range []string{"--fixed-schedule", "--request-rate", "--user-centric-rate"} {
		if modes[flag] && given.Changed("arrival") {
			fault("--arrival", fmt.Errorf("contradicts %s: want one way to say when requests are due", flag))
		}
	}
	switch {
	case a.fixedSchedule:
		w.Arrival = "exact"
		if w.Trace.Path == "" {
			fault("--fixed-schedule", errors.New("want --input-file too: the times are a trace's"))
		}
	case a.requestRate != "" && !strings.EqualFold(a.requestRate, "inf"):
		rate, err := strconv.ParseFloat(a.requestRate, 64)
		if err != nil || !(rate > 0 && rate <= 1e6) {
			fault("--request-rate", fmt.Errorf("want requests per second above 0, or inf, got %q", a.requestRate))
		}
		w.Arrival, w.Rate = a.rateMode, rate
		if given.Changed("arrival-smoothness") {
			if given.Changed("arrival-pattern") && a.rateMode != "gamma" {
				fault("--arrival-smoothness", fmt.Errorf("needs --arrival-pattern gamma, got %q", a.rateMode))
			}
			w.Arrival, w.Burstiness = "gamma", a.smoothness
		}
		if w.Arrival != "poisson" && w.Arrival != "constant" && w.Arrival != "gamma" {
			fault("--arrival-pattern", fmt.Errorf("want poisson, constant or gamma, got %q", a.rateMode))
		}
	case given.Changed("user-centric-rate"):
		w.Arrival, w.Rate, w.Users = "users", a.userRate, a.users
		if !(a.userRate > 0 && a.userRate <= 1e6) {
			fault("--user-centric-rate", fmt.Errorf("want requests per second above 0, got %v", a.userRate))
		}
		if a.users < 1 {
			fault("--num-users", fmt.Errorf("want an integer ≥ 1 with --user-centric-rate, got %d", a.users))
		}
	case a.users != 0:
		fault("--num-users", errors.New("want --user-centric-rate too"))
	case a.rescale.Speedup != 1 && o.Workload.Trace.Path != "" && a.requestRate == "" && o.concurrency == "" && !given.Changed("arrival"):
		w.Arrival = "exact" // a speedup of the trace's times implies these times
	case o.concurrency == "" && !given.Changed("arrival"):
		o.concurrency = "1"
		if strings.EqualFold(a.requestRate, "inf") {
			o.concurrency = strconv.Itoa(unlimited)
		}
	}
	for _, flag := range []string{"arrival-pattern", "arrival-smoothness"} {
		if given.Changed(flag) && a.requestRate == "" {
			fault("--"+flag, errors.New("want --request-rate too"))
		}
	}
	o.takeWindow(given, fault)
	if given.Changed("benchmark-duration") && a.benchmarkDuration == 0 {
		fault("--benchmark-duration", errors.New("want seconds > 0, got 0"))
	}
	if a.benchmarkDuration > 0 {
		o.duration = config.Duration(a.benchmarkDuration)
	}
	switch {
	case a.requestCount < 0 || given.Changed("request-count") && a.requestCount == 0:
		fault("--request-count", fmt.Errorf("want an integer ≥ 1, got %d", a.requestCount))
	case given.Changed("num-sessions"):
		o.requests = o.turnsInAll(given, fault)
	case a.requestCount > 0:
		o.requests = a.requestCount
	case w.Synthetic.Given() && o.duration == 0 && o.requests == 0:
		o.requests, o.Few = FewRequests, a.requestRate == "" && !given.Changed("user-centric-rate")
	}
}

// takeWindow determines which part of the file is sent.
func (o *Flags) takeWindow(given *pflag.FlagSet, fault faults) {
	a, w := &o.Aliases, &o.Workload
	for _, name := range []string{"start", "end", "auto"} {
		if flag := "fixed-schedule-" + name + "-offset"; given.Changed(flag) && !a.fixedSchedule {
			fault("--"+flag, errors.New("want --fixed-schedule too"))
		}
	}
	if a.startOffset < 0 || a.endOffset < 0 || a.endOffset > 0 && a.endOffset < a.startOffset {
		fault("--fixed-schedule-end-offset", fmt.Errorf("want milliseconds, and the end behind the start, got %d to %d", a.startOffset, a.endOffset))
		return
	}
	if given.Changed("fixed-schedule-start-offset") {
		w.Trace.From = config.Duration(time.Duration(a.startOffset) * time.Millisecond)
	}
	if given.Changed("fixed-schedule-end-offset") { // the end is inclusive
		w.Trace.To = config.Duration(time.Duration(a.endOffset+1) * time.Millisecond)
	}
}
