package main

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"replayd/internal/canary"
	"replayd/internal/schedule"
	"replayd/internal/sim"
	"replayd/internal/synth"
	"replayd/internal/trace"
)

// A load is the requests that both servers of a rollout get.
type load struct {
	name     string
	arrivals []Arrival
	loop     int // rows of a loop
	period   time.Duration
	long     time.Duration
}

// openSample writes the bundled sample to a folder and opens it.
func openSample(ctx context.Context, dir string) (*trace.File, error) {
	path := filepath.Join(dir, "sample.jsonl")
	if err := os.WriteFile(path, synth.Sample, 0o600); err != nil {
		return nil, err
	}
	return trace.Open(ctx, path, trace.Options{})
}

// newLoad lists what a plan sends within a time, or of that each n-th row. A loop has texts of its own, as with prompt.salt: loop.
func newLoad(f *trace.File, arrival schedule.Arrival, long time.Duration, nth int) (*load, error) {
	plan, err := schedule.New(schedule.FromFile(f),
		schedule.Options{
			Pattern: schedule.Pattern{Arrival: arrival, Speed: 1},
			Repeat:  schedule.Repeat{Mode: schedule.Loops, Align: schedule.Start},
		})
	if err != nil {
		return nil, err
	}
	l := &load{name: fmt.Sprintf("%s, %s", filepath.Base(f.Stats.Path), arrival), long: long}
	loop := plan.Loop(start, start)
	for loop.Start.Sub(start) < long {
		rows, err := plan.Rows(loop, loop.Start)
		if err != nil {
			return nil, err
		}
		for row := 0; ; row++ {
			due, err := rows.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			if row%nth != 0 {
				continue
			}
			l.arrivals = append(l.arrivals, Arrival{
				ID: due.ID(), At: due.At.Sub(start), Prompt: due.InputTokens + 9, Output: max(due.OutputTokens, 1),
				Keys: keys(due.Blocks, loop.Number),
			})
		}
		l.period = plan.Period(loop)
		if l.loop == 0 {
			l.loop = len(l.arrivals)
		}
		loop, _ = plan.Next(loop, loop.Start)
	}
	return l, nil
}

var seed = maphash.MakeSeed()

// keys are those of a prompt's blocks: each stands for the block and all before it.
func keys(blocks []uint64, loop int64) []uint64 {
	all := make([]uint64, len(blocks))
	before := uint64(loop)
	for i, b := range blocks {
		before = maphash.Comparable(seed, [2]uint64{before, b})
		all[i] = before
	}
	return all
}

// blockTokens is the size of a block of the traces.
const blockTokens = 512

// engine returns an engine that the load keeps busy for a share of the time: its rates are such that it would answer the rows of a
// loop, all sent at once, within that share of the loop.
func (l *load) engine(stepTokens int, share float64) (sim.Options, error) {
	o := sim.Defaults()
	o.BlockTokens, o.ChunkTokens, o.StepTokens, o.MaxQueue = blockTokens, 32, stepTokens, 1<<20
	for range 3 { // the rates change how many streams share a step, and so a little what is carried
		at := make([]Arrival, l.loop)
		for i, a := range l.arrivals[:l.loop] {
			at[i] = a
			at[i].At = 0
		}
		played, err := Play(o, at)
		if err != nil {
			return o, err
		}
		var last time.Duration
		for _, p := range played {
			last = max(last, p.Last)
		}
		factor := last.Seconds() / (share * l.period.Seconds())
		o.PrefillRate *= factor
		o.DecodeRate *= factor
	}
	return o, nil
}

// play returns the times of both servers, with noise of their own.
func (l *load) play(o sim.Options, e effect, rollout uint64) (baseline, candidate []Played, err error) {
	o.Seed = 2 * rollout
	if baseline, err = Play(o, l.arrivals); err != nil {
		return nil, nil, err
	}
	o.Seed++
	e.change(&o)
	candidate, err = Play(o, l.arrivals)
	return baseline, candidate, err
}

// start is the first instant of a rollout.
var start = time.Unix(0, 0)

// compared returns the pair of a row as the program has it.
func (l *load) compared(row int, baseline, candidate []Played) canary.Pair {
	a := &l.arrivals[row]
	p := canary.Pair{At: start.Add(a.At)}
	for side, played := range [][]Played{baseline, candidate} {
		got := played[row]
		p.Requests[side] = canary.Request{
			Sent: p.At, First: start.Add(got.First), End: start.Add(got.Last),
			TTFT: got.First - a.At, E2E: got.Last - a.At, TPOT: (got.Last - got.First) / time.Duration(max(1, a.Output-1)),
		}
	}
	return p
}

// isLook says whether a row is the first after a multiple of a time.
func (l *load) isLook(row int, every time.Duration) bool {
	return row == 0 || l.arrivals[row].At/every != l.arrivals[row-1].At/every
}

// A said is the program's verdict of a rollout.
type said struct {
	verdict canary.Verdict
	metric  canary.Metric
	at      time.Duration
	blocks  int64
}

// verdict gives the pairs to a comparison of the program, asks it once a minute, and returns its verdict: a fail, else the first pass.
func (l *load) verdict(baseline, candidate []Played, e effect, rollout uint64) said {
	c := canary.New(canary.Defaults())
	passed := said{verdict: canary.Undecided}
	rng := rand.New(rand.NewPCG(rollout, 1))
	for row, a := range l.arrivals {
		p := l.compared(row, baseline, candidate)
		e.spoil(&p, rng)
		c.Add(&p)
		if !l.isLook(row, time.Minute) {
			continue
		}
		blocks, j := int64(0), c.Judge()
		for _, m := range j.Metrics {
			blocks = max(blocks, m.Blocks)
		}
		switch {
		case j.Verdict == canary.Fail:
			return said{canary.Fail, j.Metric, a.At, blocks}
		case j.Verdict == canary.Pass && passed.at == 0:
			passed = said{canary.Pass, 0, a.At, blocks}
		}
	}
	return passed
}
