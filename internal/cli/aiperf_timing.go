package cli

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"replayd/internal/scalar"
	"replayd/internal/schedule"
)

// takeTurnDelays changes the delays between turns. AIPerf's cap of 0 seconds means none, and not no limit.
func (o *Flags) takeTurnDelays() {
	a, d := &o.Aliases, &o.Workload.TurnDelay
	if o.given.Changed("inter-turn-delay-cap-seconds") && d.Max == 0 || a.noDelays && !a.fixedSchedule {
		d.Scale = 0
	}
}

// takeStarts determines where the first sessions begin.
func (o *Flags) takeStarts() {
	a := &o.Aliases
	if !o.given.Changed("trajectory-start-min-ratio") && !o.given.Changed("trajectory-start-max-ratio") {
		return
	}
	if !(a.startFrom >= 0 && a.startFrom <= a.startTo && a.startTo <= 1) {
		o.wrong.Add("--trajectory-start-min-ratio",
			"want 0 to --trajectory-start-max-ratio, which is at most 1, got %v and %v", a.startFrom, a.startTo)
		return
	}
	o.Workload.Within = scalar.Within{a.startFrom, a.startTo}
}

func (o *Flags) turnsInAll() int {
	n, s, set := o.Aliases.sessions, o.Workload.Synthetic, o.Workload.Dataset
	switch {
	case o.given.Changed("request-count"):
		o.wrong.Add("--num-sessions", "contradicts --request-count: want one of them")
	case n < 1 || n > unlimited:
		o.wrong.Add("--num-sessions", "want an integer from 1 to %d, got %d", unlimited, n)
	case set.Format != "" && set.Format != "multi_turn":
		return n
	case !s.Given() || s.TurnsStddev > 0 || s.Turns != math.Trunc(s.Turns) || s.Turns > unlimited:
		o.wrong.Add("--num-sessions", "needs conversations of one length (--session-turns-mean N, no --session-turns-stddev): else give --request-count")
	default:
		return n * max(1, int(s.Turns))
	}
	return 0
}

// takeTiming determines when rows are due, and how many there are.
func (o *Flags) takeTiming() {
	a, w := &o.Aliases, &o.Workload
	o.takeStarts()
	modes := map[string]bool{
		"--fixed-schedule": a.fixedSchedule, "--request-rate": a.requestRate != "",
		"--user-centric-rate": o.given.Changed("user-centric-rate"),
	}
	for _, pair := range [][2]string{{"--fixed-schedule", "--user-centric-rate"}, {"--fixed-schedule", "--request-rate"}, {"--request-rate", "--user-centric-rate"}} {
		o.wrong.If(modes[pair[0]] && modes[pair[1]],
			pair[1], "contradicts %s: want one way to say when requests are due", pair[0])
	}
	for _, flag := range []string{"--fixed-schedule", "--request-rate", "--user-centric-rate"} {
		o.wrong.If(modes[flag] && o.given.Changed("arrival"),
			"--arrival", "contradicts %s: want one way to say when requests are due", flag)
	}
	switch {
	case a.fixedSchedule:
		w.Arrival = "exact"
		o.wrong.If(w.Trace.Path == "", "--fixed-schedule", "want --input-file too: the times are a trace's")
	case a.requestRate != "" && !strings.EqualFold(a.requestRate, "inf"):
		rate, err := strconv.ParseFloat(a.requestRate, 64)
		o.wrong.If(err != nil || !(rate > 0 && rate <= 1e6),
			"--request-rate", "want requests per second above 0, or inf, got %q", a.requestRate)
		w.Arrival, w.Rate = schedule.Arrival(a.rateMode), rate
		if o.given.Changed("arrival-smoothness") {
			w.Burstiness = a.smoothness
		}
		if o.given.Changed("arrival-smoothness") || o.given.Changed("burstiness") {
			o.wrong.If(o.given.Changed("arrival-pattern") && a.rateMode != "gamma",
				"--arrival-smoothness", "needs --arrival-pattern gamma, got %q", a.rateMode)
			w.Arrival = "gamma"
		}
		o.wrong.If(w.Arrival != "poisson" && w.Arrival != "constant" && w.Arrival != "gamma",
			"--arrival-pattern", "want poisson, constant or gamma, got %q", a.rateMode)
	case o.given.Changed("user-centric-rate"):
		w.Arrival, w.Rate, w.Users = "users", a.userRate, a.users
		o.wrong.If(!(a.userRate > 0 && a.userRate <= 1e6),
			"--user-centric-rate", "want requests per second above 0, got %v", a.userRate)
		o.wrong.If(a.users < 1, "--num-users", "want an integer ≥ 1 with --user-centric-rate, got %d", a.users)
	case o.given.Changed("rate") && !o.given.Changed("arrival"):
		w.Arrival = "poisson"
		if o.given.Changed("burstiness") {
			w.Arrival = "gamma"
		}
	case a.users != 0:
		o.wrong.Add("--num-users", "want --user-centric-rate too")
	case a.rescale.Speedup != 1 && o.Workload.Trace.Path != "" && a.requestRate == "" && o.concurrency == "" && !o.given.Changed("arrival"):
		w.Arrival = "exact" // a speedup of the trace's times implies these times
	case o.concurrency == "" && !o.given.Changed("arrival"):
		o.concurrency = "1"
		if strings.EqualFold(a.requestRate, "inf") {
			o.concurrency = strconv.Itoa(min(cmp.Or(max(a.requestCount, w.Rows, 0), unlimited), unlimited))
		}
	}
	for _, flag := range []string{"arrival-pattern", "arrival-smoothness"} {
		o.wrong.If(o.given.Changed(flag) && a.requestRate == "", "--"+flag, "want --request-rate too")
	}
	o.takeWindow()
	o.wrong.If(o.given.Changed("benchmark-duration") && o.Duration == 0,
		"--benchmark-duration", "want seconds > 0, got 0")
	o.takeGrace()
	switch {
	case a.requestCount < 0 || o.given.Changed("request-count") && a.requestCount == 0:
		o.wrong.Add("--request-count", "want an integer ≥ 1, got %d", a.requestCount)
	case o.given.Changed("num-sessions"):
		w.Rows = o.turnsInAll()
	case a.requestCount > 0:
		w.Rows = a.requestCount
	case w.Synthetic.Given() && o.Duration == 0 && w.Rows == 0:
		w.Rows, o.Few = FewRequests, a.requestRate == "" && w.Rate == 0 && !o.given.Changed("user-centric-rate")
	}
}

// takeGrace determines how long requests in flight may go on after --benchmark-duration (aiperf 0.13.0,
// timing/phase/runner.py).
func (o *Flags) takeGrace() {
	if !o.given.Changed("benchmark-duration") {
		o.wrong.If(o.given.Changed("benchmark-grace-period"), "--benchmark-grace-period", "want --benchmark-duration too")
		return
	}
	if strings.EqualFold(o.Aliases.grace, "inf") {
		return
	}
	o.fault("--benchmark-grace-period", (*secondsValue)(&o.Grace).Set(o.Aliases.grace))
	o.Cut = true
}

// takeWindow determines which part of the file is sent.
func (o *Flags) takeWindow() {
	a, w := &o.Aliases, &o.Workload
	for _, name := range []string{"start", "end", "auto"} {
		if flag := "fixed-schedule-" + name + "-offset"; o.given.Changed(flag) && !a.fixedSchedule {
			o.wrong.Add("--"+flag, "want --fixed-schedule too")
		}
	}
	if a.startOffset < 0 || a.endOffset < 0 || a.endOffset > 0 && a.endOffset < a.startOffset {
		o.wrong.Add("--fixed-schedule-end-offset", "want milliseconds, and the end behind the start, got %d to %d",
			a.startOffset, a.endOffset)
		return
	}
	if o.given.Changed("fixed-schedule-start-offset") {
		w.Trace.From = time.Duration(a.startOffset) * time.Millisecond
	}
	if o.given.Changed("fixed-schedule-end-offset") { // the end is inclusive
		w.Trace.To = time.Duration(a.endOffset+1) * time.Millisecond
	}
}
