package live

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"replayd/internal/measure"
)

// A level says at a glance how well a workload runs. The page shows the worst level first.
type level int

const (
	idle level = iota // nothing is to be sent
	well
	strained
	bad
)

var levelNames = [...]string{"idle", "ok", "warn", "bad"}

func (l level) String() string { return levelNames[l] }

func (l level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// A verdict is a level and its reason in one sentence, for an operator who was just woken.
type verdict struct {
	Level level   `json:"level"`
	Text  string  `json:"text"`
	Since instant `json:"since,omitzero"` // when the level became this one
}

// wholeFrom is the percentage from which no decimals are shown.
const wholeFrom = 10

// judge judges a workload by its state, and by the counts and the p99 of lateness of the last minute.
func judge(o *WorkloadOptions, s *State, m countsAt, late value) verdict {
	switch s.Phase {
	case Failed:
		return verdict{Level: bad, Text: "failed" + because(s.Reason)}
	case Paused:
		text := "paused: what falls due is dropped"
		if o.Closed {
			text = "paused: nothing falls due"
		}
		return verdict{Level: strained, Text: text + because(s.Reason)}
	case Guarded: // whatever else is wrong, the guard is why nothing is sent
		v := verdict{Level: strained, Text: "held back by the guard" + because(s.Reason)}
		if down(s) {
			v = verdict{Level: bad, Text: "the target " + cut(s.TargetText, reasonBytes) + "; the guard holds requests back"}
		}
		v.Level = max(v.Level, judgeRequests(o, m).Level)
		return v
	case Over:
		return verdict{Level: idle, Text: "over" + because(s.Reason)}
	}
	if down(s) {
		return verdict{Level: bad, Text: "the target " + cut(s.TargetText, reasonBytes)}
	}
	v := judgeRequests(o, m)
	switch slo := judgeSLO(o, m); {
	case slo.Level > v.Level:
		v = slo
	case slo.Level == bad && v.Level == bad:
		v.Text += "; " + met(m) + " of the eligible ones met the SLO"
	}
	if v.Level > well {
		return v
	}
	if v := judgeBudget(m); v.Level > well {
		return v
	}
	switch {
	case s.Ledger.Waiting > 0 && s.Ledger.InFlight >= int64(o.Lanes):
		return verdict{Level: strained, Text: fmt.Sprintf("all %d lanes are busy, %d waiting", o.Lanes, s.Ledger.Waiting)}
	case late.known() && float64(late) > lateStrained:
		return verdict{Level: strained, Text: "requests go out late: p99 " + short(late)}
	case s.Skew.Abs().Seconds() >= skewStrained:
		return verdict{Level: strained, Text: "the wall clock moved by " + s.Skew.Round(time.Millisecond).String() + " since the loop began"}
	case s.Phase == Waiting || s.Phase == Draining:
		return verdict{Level: idle, Text: string(s.Phase) + because(s.Reason)}
	case s.Phase == Warming:
		return verdict{Level: well, Text: "warming up" + because(s.Reason)}
	}
	return verdict{Level: well, Text: "all well" + because(s.Reason)}
}

func down(s *State) bool { return !s.TargetUp && s.TargetText != "" }

// judgeRequests judges requests that failed, and requests that were dropped as overload, missed, session_failed or
// invalid. A workload that sheds load as configured is at most strained. The text also counts drops of the guard: it
// would contradict the rest of the page without them.
func judgeRequests(o *WorkloadOptions, m countsAt) verdict {
	failed, most, mostN := m.Failed(), "", int64(0)
	for _, o := range outcomes {
		if n := m.Outcomes[o]; o.Failed() && n > mostN {
			most, mostN = string(o), n
		}
	}
	var dropped, all int64 // judged; judged or dropped by the guard
	counted := []measure.DropReason{
		measure.Overload, measure.Guarded, measure.Missed, measure.SessionFailed, measure.Invalid,
	}
	for _, why := range counted {
		n := m.Dropped[why]
		if n > mostN {
			most, mostN = string(why), n
		}
		all += n
		if why != measure.Guarded {
			dropped += n
		}
	}
	ended := m.Finished() - m.Outcomes[measure.Cancelled]
	of := float64(ended + dropped)
	if failed == 0 && float64(dropped) <= droppedStrained*of {
		return verdict{Level: well}
	}
	what := "failed"
	switch {
	case failed == 0:
		what = "were dropped"
	case all > 0:
		what = "failed or were dropped"
	}
	if mostN < failed+all {
		most = "mostly " + most
	}
	v := verdict{Level: strained, Text: fmt.Sprintf("%s of requests %s in the last minute: %s", percent(float64(failed+all)/float64(ended+all)), what, most)}
	lost := float64(failed + dropped)
	if o.Sheds {
		lost -= float64(m.Dropped[measure.Overload])
	}
	if lost > lostBad*of && lost >= countBad {
		v.Level = bad
	}
	return v
}

// judgeSLO compares the share of the eligible requests that missed the SLO with the share that may.
func judgeSLO(o *WorkloadOptions, m countsAt) verdict {
	share, ok := m.ServiceAttainment()
	if len(o.SLO) == 0 || !ok {
		return verdict{Level: well}
	}
	missed, may := 1-share, 1-o.Objective
	v := verdict{Level: well, Text: met(m) + " of the eligible requests in the last minute met the SLO"}
	switch {
	case missed > min(missedBad*may, missedBadMost) && float64(m.Eligible-m.Good) >= countBad:
		v.Level = bad
	case missed > missedStrained*may:
		v.Level = strained
	}
	return v
}

func met(m countsAt) string {
	if m.Good == 0 {
		return "none"
	}
	share, _ := m.ServiceAttainment()
	return percent(share)
}

// judgeBudget judges requests that the budget dropped: nothing is wrong, but the load is not the trace's.
func judgeBudget(m countsAt) verdict {
	dropped := m.Dropped[measure.Budget]
	if dropped == 0 {
		return verdict{Level: well}
	}
	share := float64(dropped) / float64(m.Finished()+m.Unsent())
	return verdict{Level: strained, Text: "held back by its budget: " + percent(share) + " of requests in the last minute"}
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + cut(reason, reasonBytes)
}

func percent(share float64) string {
	switch p := share * 100; {
	case p < 0.1:
		return "under 0.1 %"
	case p < wholeFrom:
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	default:
		return strconv.FormatFloat(p, 'f', 0, 64) + " %"
	}
}

// judgeAll returns the sentence at the top of the page.
func judgeAll(names []string, each []verdict) verdict {
	var count [len(levelNames)]int
	var worst verdict
	name := ""
	for i, v := range each {
		count[v.Level]++
		if v.Level > worst.Level || i == 0 {
			worst, name = v, names[i]
		}
	}
	switch {
	case len(each) == 0:
		return verdict{Level: idle, Text: "No workload"}
	case worst.Level == idle:
		return verdict{Level: idle, Text: "Nothing is being sent"}
	case worst.Level == well && len(each) == 1:
		return verdict{Level: well, Text: "All well"}
	case count[bad]+count[strained] == 0:
		return verdict{Level: well, Text: "All well: " + tally(count)}
	case count[bad]+count[strained] == 1:
		return verdict{Level: worst.Level, Text: name + ": " + worst.Text}
	}
	return verdict{Level: worst.Level, Text: tally(count)}
}

// tally counts the workloads by level, the worst level first.
func tally(count [len(levelNames)]int) string {
	var parts []string
	for l, word := range []string{bad: "in trouble", strained: "strained", well: "running well", idle: "idle"} {
		if count[l] > 0 {
			parts = append([]string{fmt.Sprintf("%d %s", count[l], word)}, parts...)
		}
	}
	return strings.Join(parts, ", ")
}

// Where the verdict on the last minute changes. Alerts that judge the same have the same values: a test reads alerts/.
// They differ in the time for which it must hold, and so in how many requests it takes. ReplaydLate judges the mean of 5
// minutes without waits for a lane: one stall is within it, and not within lateStrained.
const (
	lostBad         = 0.05 // share of the requests that failed or were dropped
	droppedStrained = 0.01 // share of the requests that were dropped; of those that failed one is enough
	missedBad       = 14.4 // share of the eligible requests that missed the SLO, ÷ the share that may
	missedBadMost   = 0.9  // the share that is bad with any objective
	missedStrained  = 1    // as missedBad
	countBad        = 2    // requests; one alone is not bad
	lateStrained    = 0.05 // p99 of lateness in seconds
	skewStrained    = 0.5  // of the wall clock, in seconds
)
