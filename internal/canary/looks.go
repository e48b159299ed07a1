package canary

import (
	"fmt"
	"math"
	"slices"
	"time"

	"replayd/internal/stats"
)

// A Scope is the subject of a verdict.
type Scope string

// Scopes; the list is complete.
const (
	ScopePair Scope = "pair" // the pods that were compared, in that time
	ScopePods Scope = "pods" // the version that they are a sample of
)

// Scopes lists all scopes.
var Scopes = []Scope{ScopePair, ScopePods}

// FirstLook is when pods are first looked at.
const FirstLook = 15 * time.Minute

// lookTimes are when pods are looked at, since the first judged pair.
var lookTimes = [...]time.Duration{FirstLook, 30 * time.Minute, time.Hour, 2 * time.Hour}

// leastPods is the least number of pods on each side for a sentence about a version.
const leastPods = 3

// looked are the metrics that pods are compared by. A tail is told by blocks, which are not of one pod.
var looked = [...]Metric{Bad, TTFT, TPOT, E2E, Queued}

// Looks compare the pods of two versions at a few instants, each pod as one value. A pair of servers has one value, however many minutes: a
// property that lasts for the life of a pod, such as a slow GPU, cannot be told from its version. Looks are Student's test of two samples: if the pods of both sides are
// drawn by chance, each on a machine of its own, and their values are about normal and of one spread, then a look is wrong in at most its share of alpha.
type looks struct {
	LooksSnapshot // Begun is that of a comparison that was restored, before its first pair

	begin  time.Time // first judged pair; zero: the next one sets it
	failed Metric    // with the verdict fail
}

// podSums are the sums over a pod's pairs.
type podSums struct {
	Judged int64            `json:"judged"`
	Bad    int64            `json:"bad"`
	Queued int64            `json:"queued"`
	Calm   [E2E + 1]int64   `json:"calm"` // pairs, by latency
	Logs   [E2E + 1]float64 `json:"logs"` // ln(candidate ÷ baseline) of those
}

// A PodsMetric is a metric over pods in a look.
type PodsMetric struct {
	// Candidate ÷ baseline of a latency, or excess of a share, with a one-sided bound each way at the chance of a fail. NaN: there is no value.
	Estimate float64 `json:"estimate"`
	Lower    float64 `json:"lower"`
	Upper    float64 `json:"upper"`
	// Spread is the deviation between the pods of one side: of a latency's natural logarithm, or of a share.
	Spread float64 `json:"spread"`
	Passed bool    `json:"passed"`
}

// A PodsState is the answer of the looks about a version.
type PodsState struct {
	Verdict Verdict
	Reason  Reason // FewPods, PodsChanged, or NextLook; "" unless it is undecided
	Metric  Metric // that has failed
	Pods    [2]int // that requests went to
	Valued  [2]int // of those, in the latest look
	Looks   int    // so far
	After   time.Duration
	Next    time.Duration // since the first judged pair; 0: there is no further look
	Metrics [metrics]PodsMetric
	Rank    Rank
}

// A Rank is the place of the only pod of the candidate among several of the baseline. It is not judged.
type Rank struct {
	Metric Metric
	Slower int // pods of the baseline that are faster
	Of     int // 0: there is no rank
}

// add adds a judged pair, and looks at the pods if it is time to.
func (l *looks) add(p *Pair, queued [2]bool, o *Options) {
	if l.begin.IsZero() && (p.Void == NotVoid || l.Begun > 0) {
		l.begin = p.At.Add(-l.Begun)
	}
	if p.Void != NotVoid || l.Changed {
		return
	}
	if since := p.At.Sub(l.begin); l.Verdict != Fail && l.Done < len(lookTimes) && since >= lookTimes[l.Done] {
		l.look(o)
		for l.Done < len(lookTimes) && since >= lookTimes[l.Done] { // replayd was down meanwhile
			l.Done++
		}
		l.After = since
	}
	for side, r := range p.Requests {
		number := min(int(r.Pod), maxPods)
		if number == 0 {
			continue
		}
		for len(l.Pods[side]) < number {
			l.Pods[side] = append(l.Pods[side], podSums{})
		}
		s := &l.Pods[side][number-1]
		s.Judged++
		s.Bad += one(r.Bad)
		s.Queued += one(queued[side])
		if queued != [2]bool{} { // a look needs no blocks that are independent of each other, so answers of the block before do not matter
			continue
		}
		for m := range s.Logs {
			if ratio := p.logRatio(Metric(m)); !math.IsNaN(ratio) {
				s.Calm[m]++
				s.Logs[m] += ratio
			}
		}
	}
}

// change says that a pod is another one than before, or has restarted: no look is left.
func (l *looks) change() { l.Changed = l.Changed || !l.begin.IsZero() || l.Begun > 0 }

func one(v bool) int64 {
	if v {
		return 1
	}
	return 0
}

// values returns a metric's value of each pod that has enough pairs, and the variance that chance alone gives the value of a share.
func (l *looks) values(m Metric, o *Options) (all [2][]float64, chance float64) {
	least := int64(o.MinPairs)
	for side, pods := range l.Pods {
		for _, s := range pods {
			switch {
			case m.IsLatency():
				if s.Calm[m] >= least {
					all[side] = append(all[side], s.Logs[m]/float64(s.Calm[m]))
				}
			case s.Judged >= least:
				n := s.Bad
				if m == Queued {
					n = s.Queued
				}
				all[side] = append(all[side], float64(n)/float64(s.Judged))
				share := float64(n+1) / float64(s.Judged+2)
				chance += share * (1 - share) / float64(s.Judged)
			}
		}
	}
	return all, chance / float64(max(1, len(all[0])+len(all[1])))
}

// look compares the pods. Each look has a share of alpha, and of that each metric. For a pass all metrics must be within.
func (l *looks) look(o *Options) {
	l.Latest, l.Valued = [metrics]*PodsMetric{}, [2]int{}
	share := o.Alpha / float64(len(lookTimes))
	failed, passes := Metric(-1), true
	for _, m := range looked {
		all, chance := l.values(m, o)
		if m == E2E && (len(all[Baseline]) < l.judged(Baseline, o) || len(all[Candidate]) < l.judged(Candidate, o)) {
			passes = false // a pod without values may be the slow one
		}
		base, cand := all[Baseline], all[Candidate]
		if m == TTFT || m == E2E && l.Valued == [2]int{} {
			l.Valued = [2]int{len(base), len(cand)}
		}
		if min(len(base), len(cand)) < leastPods || len(l.Pods[Baseline]) != len(l.Pods[Candidate]) {
			passes = passes && m != E2E // which all answers have
			continue
		}
		difference, variance := mean(cand)-mean(base), pooled(base, cand)
		if m.IsLatency() { // a pair is in a value of both sides
			difference = (mean(cand) + mean(base)) / 2
		}
		spread, freedom := math.Sqrt(max(variance, chance)), float64(len(base)+len(cand)-2)
		scale := spread * math.Sqrt(1/float64(len(base))+1/float64(len(cand)))
		margin := stats.StudentQuantile(2*share/float64(len(looked)), freedom) * scale
		one := PodsMetric{Estimate: difference, Lower: difference - margin, Upper: difference + margin, Spread: spread}
		one.Passed = difference+stats.StudentQuantile(2*share, freedom)*scale <= o.threshold(m) && (m != Bad || l.Done >= badLooks)
		passes = passes && (one.Passed || !m.IsLatency() && o.ToleranceOf(m) >= 1)
		if failed < 0 && one.Lower > o.threshold(m) {
			failed = m
		}
		if m.IsLatency() {
			one.Estimate, one.Lower, one.Upper = math.Exp(one.Estimate), math.Exp(one.Lower), math.Exp(one.Upper)
		}
		l.Latest[m] = &one
	}
	switch {
	case failed >= 0: // final
		l.Verdict, l.failed, l.Failed = Fail, failed, failed.String()
	case passes:
		l.Verdict = Pass
	default:
		l.Verdict = Undecided
	}
}

func mean(values []float64) (sum float64) {
	for _, v := range values {
		sum += v / float64(len(values))
	}
	return sum
}

// badLooks are the looks at which no share of bad requests passes: they come in bursts, and within half an hour none may have come.
const badLooks = 2

// judged is how many pods of a side have had enough pairs for values.
func (l *looks) judged(side Side, o *Options) (n int) {
	for _, s := range l.Pods[side] {
		n += int(one(s.Judged >= int64(o.MinPairs)))
	}
	return n
}

// pooled is the common variance of two samples.
func pooled(samples ...[]float64) float64 {
	sum, freedom := 0.0, 0
	for _, values := range samples {
		middle := mean(values)
		for _, v := range values {
			sum += (v - middle) * (v - middle)
		}
		freedom += len(values) - 1
	}
	return sum / float64(freedom)
}

func (l *looks) state(o *Options) PodsState {
	s := PodsState{
		Verdict: Undecided, Looks: l.Done, After: l.After, Valued: l.Valued, Metric: l.failed,
		Pods: [2]int{len(l.Pods[Baseline]), len(l.Pods[Candidate])},
	}
	for m, of := range l.Latest {
		if of == nil {
			nan := math.NaN()
			of = &PodsMetric{nan, nan, nan, nan, false}
		}
		s.Metrics[m] = *of
	}
	if l.Done < len(lookTimes) && !l.Changed && l.Verdict != Fail {
		s.Next = lookTimes[l.Done]
	}
	few := s.Pods[Baseline] != s.Pods[Candidate] || s.Pods[Baseline] < leastPods || l.Done > 0 && min(l.Valued[Baseline], l.Valued[Candidate]) < leastPods
	switch {
	case l.Verdict == Fail:
		s.Verdict = Fail
	case few:
		s.Reason = FewPods
	case l.Changed:
		s.Reason = PodsChanged
	case l.Verdict == Pass:
		s.Verdict = Pass
	default:
		s.Reason = NextLook
	}
	if l.Done > 0 {
		s.Rank = l.rank(o)
	}
	return s
}

func (l *looks) rank(o *Options) Rank {
	for _, m := range []Metric{TTFT, E2E} {
		all, _ := l.values(m, o)
		if len(all[Candidate]) != 1 || len(l.Pods[Candidate]) != 1 || len(all[Baseline]) < max(leastPods, len(l.Pods[Baseline])) {
			continue
		}
		r := Rank{Metric: m, Of: len(all[Baseline])}
		for _, ratio := range all[Baseline] {
			r.Slower += int(one(ratio > 0))
		}
		return r
	}
	return Rank{}
}

// Finds is the least ratio of a latency that a look over so many pods on each side finds in 9 of 10 cases, with the spread of the latest look.
func (s *PodsState) Finds(m Metric, pods int, o Options) float64 {
	freedom := float64(2*pods - 2)
	chance := o.Alpha / float64(len(lookTimes)*len(looked))
	bound := stats.StudentQuantile(2*chance, freedom)
	low, high := 0.0, 1.0
	for stats.StudentPower(bound, freedom, high) < 0.9 && high < 1e6 {
		low, high = high, 2*high
	}
	high = stats.Bisect(low, high, 30, func(shift float64) bool { return !(stats.StudentPower(bound, freedom, shift) < 0.9) })
	return math.Exp(o.threshold(m) + high*s.Metrics[m].Spread*math.Sqrt(2/float64(pods)))
}

// A LooksSnapshot is the state of the looks, of all pairs.
type LooksSnapshot struct {
	Pods    [2][]podSums         `json:"pods"`     // by number less 1
	Begun   time.Duration        `json:"begun_ns"` // how long before the latest pair the first judged one was
	Done    int                  `json:"done"`     // looks
	After   time.Duration        `json:"after_ns"` // the latest one
	Latest  [metrics]*PodsMetric `json:"latest"`   // nil: no value
	Valued  [2]int               `json:"valued"`   // pods in the latest look
	Verdict Verdict              `json:"verdict"`  // "" before a look; a fail is final
	Failed  string               `json:"failed"`   // metric; "": none
	Changed bool                 `json:"changed"`  // pods are not those of the beginning: no look is left
}

func (l *looks) snapshot(last time.Time) LooksSnapshot {
	s := l.LooksSnapshot
	s.Pods = [2][]podSums{slices.Clone(l.Pods[Baseline]), slices.Clone(l.Pods[Candidate])}
	if !l.begin.IsZero() {
		s.Begun = max(1, last.Sub(l.begin))
	}
	return s
}

func (l *looks) restore(s *LooksSnapshot, f *restoring) {
	l.LooksSnapshot = *s
	for side := range s.Pods {
		f.want(len(s.Pods[side]) <= maxPods, "pods", fmt.Sprintf("at most %d", maxPods), len(s.Pods[side]))
		l.Pods[side] = slices.Clone(s.Pods[side])
		f.want(s.Valued[side] >= 0 && s.Valued[side] <= len(s.Pods[side]), "valued", "at most as many as there are pods", s.Valued[side])
	}
	f.want(s.Done >= 0 && s.Done <= len(lookTimes), "done", fmt.Sprintf("0 to %d", len(lookTimes)), s.Done)
	f.want(s.Verdict == "" || slices.Contains(Verdicts, s.Verdict), "verdict", "a verdict or none", s.Verdict)
	if s.Failed != "" || s.Verdict == Fail {
		l.failed = Metric(slices.IndexFunc(Metrics[:], func(m Metric) bool { return m.String() == s.Failed }))
		f.want(l.failed >= 0 && s.Verdict == Fail, "failed", "a metric, with the verdict fail", s.Failed)
	}
}
