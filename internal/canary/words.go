package canary

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Text says the verdict of a comparison, its meaning, and on what condition it holds.
func (j *Judgment) Text(o Options) string {
	if text := j.UnequalLoads(); text != "" {
		return j.sentence(o) + ". Loads differ: " + text
	}
	return j.sentence(o)
}

func (j *Judgment) sentence(o Options) string {
	if len(j.Watch) > 0 {
		return j.watched(o)
	}
	if o.Require == ScopePods {
		return j.versionText(o)
	}
	switch j.Verdict {
	case Pass:
		return fmt.Sprintf("pass: %s, no latency of the candidate is longer by more than %s, in the median block of requests that met no queue (%s of them)%s, "+
			"and no share of its requests exceeds the baseline's by more than its tolerance; %s%s. %s",
			j.spent(), percent(o.Tolerance), percent2(j.Calm), j.overall(), o.condition(), j.unjudged(), j.aboutVersion(o))
	case Fail:
		return fmt.Sprintf("fail: %s, %s; %s. %s", j.spent(), j.worse(o), o.condition(), j.aboutVersion(o))
	}
	return "undecided: " + j.Why(o)
}

// maxOthers is the greatest difference between the shares of other clients on both sides that is not told.
const maxOthers = 0.1

// UnequalLoads says that the servers have not had the same load besides; "": it is not known that they have not.
func (j *Judgment) UnequalLoads() string {
	base, cand := j.Others[Baseline], j.Others[Candidate]
	if !(math.Abs(base-cand) > maxOthers) {
		return ""
	}
	return fmt.Sprintf("other clients got %s of the candidate's output tokens, and %s of the baseline's", percent2(cand), percent2(base))
}

// UnknownLoads says of which sides no page tells what other clients have got; "": of none.
func (j *Judgment) UnknownLoads() string {
	const none = "nothing is known of other clients: the metrics "
	one := func(of Side) string {
		return none + "page of the " + of.String() + " was not read, or counts no output tokens"
	}
	switch j.Unread {
	case [2]bool{true, true}:
		return none + "pages of both sides were not read, or count no output tokens"
	case [2]bool{Baseline: true}:
		return one(Baseline)
	case [2]bool{Candidate: true}:
		return one(Candidate)
	}
	return ""
}

// spent says how long the comparison has looked.
func (j *Judgment) spent() string {
	if j.Lasted < 2*time.Minute {
		return fmt.Sprintf("in these %.3g seconds", j.Lasted.Seconds())
	}
	return fmt.Sprintf("in these %.0f minutes", j.Lasted.Minutes())
}

// worse says in which metric the candidate has failed.
func (j *Judgment) worse(o Options) string {
	beyond := percent(o.ToleranceOf(j.Metric))
	if o.Wander > 0 && j.Metric.IsLatency() {
		beyond += " + " + percent(o.Wander) + " wander"
	}
	if j.Metric.IsLatency() {
		return fmt.Sprintf("%s of the candidate is longer than the baseline's by more than %s, in the median block", j.Metric, beyond)
	}
	return fmt.Sprintf("more requests of the candidate are %s than of the baseline, by more than %s of all", shareNames[j.Metric], beyond)
}

// condition says how often a verdict is wrong, and what that assumes.
func (o *Options) condition() string {
	return fmt.Sprintf("this is wrong in at most %s of such comparisons, if %s", percent(o.Alpha), o.assumed(" (tail, bad: than ten)"))
}

func (j *Judgment) overall() string {
	var all []string
	for m, ratio := range j.Overall {
		if !math.IsNaN(ratio) {
			all = append(all, fmt.Sprintf("%s × %.2f", Metric(m), ratio))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return "; of all answered pairs: " + strings.Join(all, ", ")
}

// WithoutValue returns the metrics of which no block has had a value: there is no judgment about them.
func (j *Judgment) WithoutValue() (all []string) {
	for m := range Metrics {
		if len(j.Watch) == 0 && j.Metrics[m].Blocks == 0 || len(j.Watch) > 0 && j.Watch[m].Blocks == 0 {
			all = append(all, Metric(m).String())
		}
	}
	return all
}

// unjudged names the metrics that a pass says nothing about; "": there are none.
func (j *Judgment) unjudged() string {
	names := j.WithoutValue()
	if len(names) == 0 {
		return ""
	}
	return "; not judged, without a value so far: " + strings.Join(names, ", ")
}

// watched says what has changed, and what is beyond its tolerance without proof of a change.
func (j *Judgment) watched(o Options) string {
	var changed, beyond []string
	for _, s := range j.Watch {
		if s.Direction != "" {
			changed = append(changed, fmt.Sprintf("%s of the candidate is %s since %s", s.Metric, s.Direction, s.Since.UTC().Format(time.RFC3339)))
		} else if text := s.beyond(o); text != "" {
			beyond = append(beyond, text)
		}
	}
	blind := ""
	if j.Blind != "" {
		blind = "blind: " + j.Why(o)
	}
	switch {
	case len(changed) > 0:
		text := "changed: " + strings.Join(changed, "; ")
		if len(beyond) > 0 {
			text += "; beyond the tolerance, but not proven yet: " + strings.Join(beyond, "; ")
		}
		if blind != "" {
			text += "; " + blind
		}
		return text
	case blind != "":
		return blind
	case j.Reason == NoData:
		return "no data yet: " + j.why(o)
	}
	text := "no metric is beyond its tolerance"
	if len(beyond) > 0 {
		text = strings.Join(beyond, "; ") + ": beyond the tolerance, but not proven yet"
	}
	return fmt.Sprintf("no change proven: %s; at most one false alarm in 30 days on average, if %s", text, o.assumed(""))
}

// assumed is the condition of a verdict, and of the rate of false alarms; long says which metrics have longer blocks with a wander.
func (o *Options) assumed(long string) string {
	if o.Wander > 0 {
		return fmt.Sprintf("the ratio of two equal servers wanders by %s at most, and nothing else differs that lasts longer than a block%s",
			percent(o.Wander), long)
	}
	return "two equal servers differ by nothing that lasts longer than a block (wander 0)"
}

// beyond tells a metric whose latest blocks are beyond its tolerance, and whether their dependence withholds the alarm; "": it is within.
func (s *WatchState) beyond(o Options) string {
	text := ""
	switch threshold := o.threshold(s.Metric); {
	case s.Blocks == 0:
	case s.Metric.IsLatency() && math.Abs(math.Log(s.Ratio)) > threshold:
		text = fmt.Sprintf("%s of the candidate is %.3g times as long", s.Metric, s.Ratio)
	case !s.Metric.IsLatency() && math.Abs(s.Excess) > threshold:
		more := "more"
		if s.Excess < 0 {
			more = "fewer"
		}
		text = fmt.Sprintf("%.3g %% %s requests of the candidate are %s", 100*math.Abs(s.Excess), more, shareNames[s.Metric])
	}
	if text != "" && s.Dependent {
		text += " (blocks too much alike)"
	}
	return text
}

// Why says why a comparison is undecided or blind, and how much longer it takes.
func (j *Judgment) Why(o Options) string {
	return fmt.Sprintf("%s: %s", j.Reason, j.why(o))
}

func (j *Judgment) why(o Options) string {
	u := &j.Unseen
	switch j.Reason {
	case FewPods, PodsChanged, NextLook:
		return j.Pods.why(o)
	case Queues:
		return j.queues()
	case FewCalm:
		for side, pod := range j.Hidden {
			if pod > 0 {
				return fmt.Sprintf("pod %d of the %s has hardly any pairs that met no queue and no answer of the block before, so the others would speak for it: "+
					"look at that pod, or take longer blocks (min_time)", pod, Side(side))
			}
		}
		return fmt.Sprintf("of the latest %d pairs %d have latencies, and only %d of those met no queue and no answer of the block before; a block needs %d of them",
			u.Pairs, u.Valued, u.Calm, o.MinPairs)
	case TooVoid:
		return j.Pairs.maxVoidWhy()
	case NoValues:
		return fmt.Sprintf("of the latest %d pairs %d have answers from both sides, and none of the last %v", u.Pairs, u.Valued, blindBlocks*max(o.MinTime, time.Second))
	case NoData:
		if !j.Warm.IsZero() {
			return "the servers warm up until " + j.Warm.UTC().Format(time.TimeOnly) + " UTC (warm_up)"
		}
		return fmt.Sprintf("no block has latencies yet; one takes %v and %d pairs without a queue, or more", o.MinTime, o.MinPairs)
	case Changed:
		return fmt.Sprintf("the ratio of %s changed at about %s: no one ratio fits to all blocks. Begin anew to judge the present one",
			j.Metric, j.Metrics[j.Metric].Changed.UTC().Format("15:04 UTC"))
	case TooMuchWander:
		return fmt.Sprintf("nothing can pass: a tolerance of %s is not above the wander of %s. The least tolerance that can pass is above %s",
			percent(o.Tolerance), percent(o.Wander), percent(math.Expm1(o.Wander)))
	case Dependent:
		return fmt.Sprintf("neighboring blocks of %s are too much alike to be evidence: take longer blocks (min_time)", j.Metric)
	case Excess:
		return fmt.Sprintf("more requests of the candidate are %s than tolerated, which is not proven", shareNames[j.Metric])
	case FewPairs:
		return j.fewPairs(o)
	}
	if j.More < 0 {
		return "the candidate is too near to the tolerance: more blocks like these decide nothing"
	}
	takes := (time.Duration(j.More) * j.BlockTime).Round(time.Second)
	if j.More == 1 {
		return fmt.Sprintf("about 1 more block like these decides, which takes %v", takes)
	}
	return fmt.Sprintf("about %d more blocks like these decide, which take %v", j.More, takes)
}

// fewPairs says which share of requests is not known well enough for a pass, and how many pairs that takes.
func (j *Judgment) fewPairs(o Options) string {
	s := &j.Metrics[j.Metric]
	if s.Blocks == 0 {
		return fmt.Sprintf("no latency is longer, but nothing is known of requests that are %s: it takes %d calm pairs", shareNames[j.Metric], 2*tailLeast)
	}
	text := fmt.Sprintf("no latency is longer, but up to %s more requests of the candidate may be %s, and %s are tolerated",
		percent2(s.ExcessUpper), shareNames[j.Metric], percent(o.ToleranceOf(j.Metric)))
	if j.More > 0 && j.Blocks > 0 {
		pairs := float64(j.Pairs.Judged+j.Pairs.Void) / float64(j.Blocks)
		text += fmt.Sprintf(": about %.0f more pairs decide", float64(j.More)*pairs)
	}
	return text
}

// queues says which side has no instant without a queue, and which share of the requests met none.
func (j *Judgment) queues() string {
	met := fmt.Sprintf(" (%d of the latest %d pairs met none)", j.Unseen.Pairs-j.Unseen.Void-j.Unseen.Queued, j.Unseen.Pairs)
	const wait = " at every instant requests wait for their first token"
	switch j.Behind {
	case [2]bool{Candidate: true}:
		return "on the candidate alone" + wait + ": it seems not to carry this load; as this goes on, more queued requests decide" + met
	case [2]bool{Baseline: true}:
		return "on the baseline alone" + wait + ": it does not carry this load, so no block can end: lower the load (speed)" + met
	}
	return "most requests are sent while earlier ones wait for their first token, so too few are left to compare: lower the load (speed)" + met
}

// shareNames are the names of the requests that a share counts.
var shareNames = map[Metric]string{Tail: "much slower than most", Queued: "queued", Bad: "bad (failed or beyond the SLO)"}

// percent formats a share: 0.05 is 5 %.
func percent(share float64) string { return fmt.Sprintf("%.4g %%", 100*share) }

// percent2 formats a share that is not exact.
func percent2(share float64) string {
	if math.IsInf(share, 0) || math.IsNaN(share) {
		return "an unknown share"
	}
	if share >= 0.1 {
		return fmt.Sprintf("%.0f %%", 100*share)
	}
	return fmt.Sprintf("%.2g %%", 100*share)
}
