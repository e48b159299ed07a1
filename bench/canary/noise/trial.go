package main

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"replayd/internal/canary"
)

// A trial is what all rollouts of a line have in common.
type trial struct {
	trace  *trace
	load   load
	noise  noise
	effect effect
	long   float64 // seconds of a rollout
}

// A judge is a comparison of the product that gets the pairs of a rollout.
type judge struct {
	options canary.Options
	slower  float64 // times as long as measured are the candidate's latencies; exactly, so that no engine blurs it
	isPast  bool    // a pass does not end it
}

// A said is the first verdict of a judge, and the first fail, with the minute at which they came.
type said struct {
	verdict canary.Verdict
	metric  canary.Metric // that failed
	at      float64
	failed  float64 // NaN: never
}

// window is the virtual time, in seconds, for which both sides go on before pairs are judged.
const window = 10.0

// rollout plays both sides, with noise that the number of the rollout decides, until all judges have said what they are
// asked for.
func (t *trial) rollout(number uint64, judges []judge) []said {
	results := make([]said, len(judges))
	open, panel := len(judges), make([]*sitting, len(judges))
	for i, j := range judges {
		results[i] = said{verdict: canary.Undecided, at: math.NaN(), failed: math.NaN()}
		panel[i] = newSitting(j, &results[i])
	}
	t.each(number, func(p canary.Pair) bool {
		for _, s := range panel {
			if !s.isOver && s.add(p) {
				open--
			}
		}
		return open > 0
	})
	return results
}

// each plays both sides and hands on the pairs, in order, until it is told to stop.
func (t *trial) each(number uint64, goOn func(p canary.Pair) bool) {
	sides := [2]*side{newSide(t, canary.Baseline, number), newSide(t, canary.Candidate, number)}
	rows := newCursor(t.trace, t.load.rate, rand.New(rand.NewPCG(number, 0)))
	next, at := rows.next()
	pairs := 0
	for until := window; ; until += window {
		for at < min(until, t.long) {
			sides[canary.Baseline].send(next, at)
			sides[canary.Candidate].send(next, at)
			next, at = rows.next()
		}
		for _, s := range sides {
			s.run(until)
		}
		for ; pairs < len(sides[0].rows) && sides[0].isAnswered(pairs) && sides[1].isAnswered(pairs); pairs++ {
			p := canary.Pair{At: start.Add(seconds(sides[0].rows[pairs].at))}
			for i, s := range sides {
				p.Requests[i] = s.request(pairs)
			}
			if !goOn(p) {
				return
			}
		}
		if until >= t.long && pairs == len(sides[0].rows) {
			return
		}
	}
}

// A sitting is a judge at work.
type sitting struct {
	judge
	*canary.Comparison
	said   *said
	asked  time.Time
	isOver bool
}

func newSitting(j judge, to *said) *sitting {
	return &sitting{judge: j, Comparison: canary.New(j.options), said: to, asked: start}
}

// add adds a pair. A verdict changes with a block only, so the comparison is asked a little more often than the shortest
// blocks end. It returns true when no more is asked for.
func (s *sitting) add(p canary.Pair) bool {
	r := &p.Requests[canary.Candidate]
	for _, d := range []*time.Duration{&r.TTFT, &r.TPOT, &r.E2E} {
		*d = time.Duration(math.Round(float64(*d) * s.slower))
	}
	s.Add(&p)
	if p.At.Sub(s.asked) < s.options.MinTime-time.Second {
		return false
	}
	s.asked = p.At
	j := s.Judge()
	if j.Verdict == canary.Undecided {
		return false
	}
	at := p.At.Sub(start).Minutes()
	if s.said.verdict == canary.Undecided {
		s.said.verdict, s.said.metric, s.said.at = j.Verdict, j.Metric, at
	}
	if j.Verdict == canary.Fail {
		s.said.failed, s.said.metric = at, j.Metric
	}
	s.isOver = j.Verdict == canary.Fail || !s.isPast
	return s.isOver
}

// rollouts plays as many at once as there are cores. The results are by rollout and judge.
func (t *trial) rollouts(n int, judges []judge) [][]said {
	all := make([][]said, n)
	parallel(n, func(i int) { all[i] = t.rollout(uint64(i), judges) })
	return all
}

// parallel calls a function with 0 to n−1, as many at once as there are cores.
func parallel(n int, call func(i int)) {
	var group sync.WaitGroup
	turns := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range n {
		turns <- struct{}{}
		group.Go(func() {
			defer func() { <-turns }()
			call(i)
		})
	}
	group.Wait()
}
