package canary

import (
	"fmt"
	"strings"
	"time"
)

// Text says the verdict of a comparison and its meaning.
func (j *Judgement) Text(o Options) string {
	if len(j.Watch) > 0 {
		return j.watched()
	}
	name := j.Metric.String()
	switch j.Verdict {
	case Pass:
		return fmt.Sprintf("pass: at this load no latency of the candidate is longer by more than %s, as a median; the chance that this is wrong is at most %s",
			percent(o.Tolerance), percent(o.Alpha))
	case Fail:
		if j.Metric.IsLatency() {
			return fmt.Sprintf("fail: %s of the candidate is longer by more than %s; the chance that this is wrong is at most %s", name, percent(o.Tolerance), percent(o.Alpha))
		}
		return fmt.Sprintf("fail: more requests of the candidate are %s; the chance that this is wrong is at most %s", shareNames[j.Metric], percent(o.Alpha))
	}
	return "undecided: " + j.Why(o)
}

// watched says what has changed.
func (j *Judgement) watched() string {
	var changed []string
	for _, s := range j.Watch {
		if s.Direction != "" {
			changed = append(changed, fmt.Sprintf("%s of the candidate is %s since %s", s.Metric, s.Direction, s.Since.UTC().Format(time.RFC3339)))
		}
	}
	switch {
	case len(changed) > 0:
		return "changed: " + strings.Join(changed, "; ")
	case j.Reason == Queues:
		return "blind: " + j.queues()
	}
	return "unchanged: no metric has changed by more than its tolerance; at most one false alarm in 30 days on average"
}

// Why says why a comparison is undecided, and how much longer it takes.
func (j *Judgement) Why(o Options) string { return fmt.Sprintf("%s: %s", j.Reason, j.missing(o)) }

func (j *Judgement) missing(o Options) string {
	switch j.Reason {
	case Queues:
		return j.queues()
	case NoValues:
		return "no pair has answers from both sides"
	case Dependent:
		return fmt.Sprintf("neighbouring blocks of %s are too much alike to be evidence: take longer blocks (min_time)", j.Metric)
	case Excess:
		return fmt.Sprintf("more requests of the candidate are %s than tolerated, which is not proven", shareNames[j.Metric])
	}
	values := false
	for _, s := range j.Metrics {
		values = values || s.Metric.IsLatency() && s.Blocks > 0
	}
	switch {
	case !values && j.BlockTime > 0:
		return fmt.Sprintf("no block has latencies yet; a verdict needs at least 9 of them, and so far a block took %v", j.BlockTime.Round(time.Second))
	case j.BlockTime == 0:
		return fmt.Sprintf("no block has ended yet; one takes %v and %d pairs without a queue or more", o.MinTime, o.MinPairs)
	case j.More < 0:
		return "the candidate is too near to the tolerance: more blocks like these decide nothing"
	}
	return fmt.Sprintf("about %d more blocks like these decide, which take %v", j.More, (time.Duration(j.More) * j.BlockTime).Round(time.Second))
}

// queues says which side has no instant without a queue.
func (j *Judgement) queues() string {
	const wait = " at every instant requests wait for their first token"
	switch j.Behind {
	case [2]bool{Candidate: true}:
		return "on the candidate alone" + wait + ": it seems not to carry this load; as this goes on, more queued requests decide"
	case [2]bool{Baseline: true}:
		return "on the baseline alone" + wait + ": it does not carry this load, so no block can end: lower the load (speed)"
	}
	return "on one of the sides or the other" + wait + ", so no block can end: lower the load (speed)"
}

// shareNames are the names of the requests that a share counts.
var shareNames = map[Metric]string{Tail: "much slower than most", Queued: "queued", Bad: "bad (failed or beyond the SLO)"}

// percent formats a share: 0.05 is 5 %.
func percent(share float64) string { return fmt.Sprintf("%.4g %%", 100*share) }
