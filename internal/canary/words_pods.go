package canary

import (
	"fmt"
	"math"
	"strings"
	"time"

	"replayd/internal/number"
)

// drawn is the condition of a verdict about a version.
const drawn = "the pods of both sides are drawn by chance, each on a machine of its own, and their values are about normal and of one spread"

// aboutVersion extends a verdict about the servers to their version, or says why it does not hold there.
func (j *Judgment) aboutVersion(o Options) string {
	p := &j.Pods
	switch {
	case p.Rank.Of > 0:
		return p.Rank.text()
	case max(p.Pods[Baseline], p.Pods[Candidate]) <= 1:
		return "One pair of servers: it says nothing about a version"
	case p.Reason == FewPods:
		return fmt.Sprintf("%s: it says nothing about a version", p.fewPods(o))
	case j.Scope == ScopePods:
		return "Of the version: " + p.claim(o)
	}
	return fmt.Sprintf("It says nothing about a version yet: %s", p.why(o))
}

// versionText is the sentence where the verdict must be about the version.
func (j *Judgment) versionText(o Options) string {
	p := &j.Pods
	if j.Verdict != Undecided {
		return fmt.Sprintf("%s: %s", j.Verdict, p.claim(o))
	}
	text := fmt.Sprintf("undecided: %s: %s", p.Reason, p.why(o))
	if p.Rank.Of > 0 {
		text += ". " + p.Rank.text()
	}
	text += ". These pods alone: " + string(j.Pair)
	if j.PairWhy != "" {
		text += ": " + string(j.PairWhy)
	}
	return text
}

// claim is the statement of the latest look about the version, with its condition.
func (p *PodsState) claim(o Options) string {
	over := fmt.Sprintf("over %d and %d pods after %s", p.Valued[Baseline], p.Valued[Candidate], minutes(p.After))
	condition := fmt.Sprintf("this is wrong in at most %s of such comparisons, if %s", percent(o.Alpha), drawn)
	switch m := p.Metric; {
	case p.Verdict == Pass:
		return fmt.Sprintf("%s, no latency of requests that met no queue is longer by more than %s, and no share of bad or queued requests is larger by more than its tolerance: "+
			"%s; tail is not judged; %s. A fault of some pods only may be missed: %d pods show one with %s only if it is in more than %s of the pods",
			over, percent(o.Tolerance), p.ratios(), condition, p.Valued[Candidate], percent2(1-o.Alpha), percent2(p.missed(o)))
	case m.IsLatency():
		return fmt.Sprintf("%s, %s of the candidate is longer than the baseline's by more than %s: %s; %s", over, m, percent(o.ToleranceOf(m)), p.ratios(), condition)
	default:
		s := p.Metrics[m]
		return fmt.Sprintf("%s, more requests of the candidate are %s than of the baseline, by more than %s of all: %+.2f %% (%+.2f %% to %+.2f %%); %s",
			over, shareNames[m], percent(o.ToleranceOf(m)), 100*s.Estimate, 100*s.Lower, 100*s.Upper, condition)
	}
}

// missed is the greatest share of pods with a fault of which the candidate's pods may all be without it, with a chance of alpha.
func (p *PodsState) missed(o Options) float64 {
	return 1 - math.Pow(o.Alpha, 1/float64(p.Valued[Candidate]))
}

// why says why nothing is said about the version.
func (p *PodsState) why(o Options) string {
	switch {
	case p.Reason == FewPods:
		return p.fewPods(o)
	case p.Reason == PodsChanged:
		return "a pod was replaced or has restarted, so there are no further looks. Hold scaling and rollouts, and begin anew"
	case p.Next == 0:
		return fmt.Sprintf("none of the %d looks has decided, and there are no more", p.Looks)
	case p.Looks == 0:
		return fmt.Sprintf("the first look at the pods is %v after the first pair", minutes(p.Next))
	}
	return fmt.Sprintf("the look after %v did not decide; the next one is %v after the first pair", minutes(p.After), minutes(p.Next))
}

func minutes(d time.Duration) string { return fmt.Sprintf("%.0f minutes", d.Minutes()) }

// fewPods says how many pods there are, and how many it takes.
func (p *PodsState) fewPods(o Options) string {
	text := fmt.Sprintf("%d and %s", p.Pods[Baseline], number.Count(p.Pods[Candidate], "pod"))
	if p.Pods[Baseline] != p.Pods[Candidate] {
		return text + fmt.Sprintf(", so those of one side get more requests each, and a sentence about a version takes as many on both sides, %d or more", leastPods)
	}
	if p.Pods[Baseline] >= leastPods {
		text += fmt.Sprintf(", of which %d and %d have %d pairs that met no queue", p.Valued[Baseline], p.Valued[Candidate], o.MinPairs)
	}
	return text + fmt.Sprintf(", and a sentence about a version takes %d on each side", leastPods)
}

// ratios has the ratio of each latency over pods.
func (p *PodsState) ratios() string {
	var all []string
	for m, of := range p.Metrics {
		if Metric(m).IsLatency() && !math.IsNaN(of.Estimate) {
			all = append(all, fmt.Sprintf("%s × %.3f (%.3f to %.3f)", Metric(m), of.Estimate, of.Lower, of.Upper))
		}
	}
	return strings.Join(all, ", ")
}

// text says where the candidate's only pod is among those of the baseline.
func (r *Rank) text() string {
	where := fmt.Sprintf("longer than on %d of %d baseline pods", r.Slower, r.Of)
	chance := fmt.Sprintf("; if its load made no difference, an equal one would be so in 1 of %d cases", r.Of+1)
	switch r.Slower {
	case r.Of:
		where = fmt.Sprintf("longer than on all of %d baseline pods", r.Of) + chance
	case 0:
		where = fmt.Sprintf("shorter than on all of %d baseline pods", r.Of) + chance
	}
	return fmt.Sprintf("%s of the candidate's only pod is %s. It gets %d times the requests of each of them. One pod says nothing about a version",
		r.Metric, where, r.Of)
}

// found are the numbers of pods for which a reader is told the least difference that a look finds.
var found = [...]int{3, 4, 6, 8}

// Findable names the least difference that a look finds with more pods, by the spread between those of the latest look; "": there was no look with a spread.
func (j *Judgment) Findable(o Options) string {
	for _, m := range []Metric{TTFT, E2E} {
		spread := j.Pods.Metrics[m].Spread
		if !(spread > 0) {
			continue
		}
		var all []string
		for _, n := range found {
			all = append(all, fmt.Sprintf("%s with %d", percent2(j.Pods.Finds(m, n, o)-1), n))
		}
		return fmt.Sprintf("the %s of pods of one side differs by %s: a look finds a version that is slower by %s pods on each side, in 9 of 10 cases",
			m, percent2(spread), strings.Join(all, ", "))
	}
	return ""
}
