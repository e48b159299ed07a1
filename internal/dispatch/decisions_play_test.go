package dispatch_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// A draft is a row and everything that will happen to it. It depends only on the seed and on the number of rows read
// before.
type draft struct {
	n                 int // rows read before it
	due               schedule.Due
	filtered, clipped bool
	err               error         // why its message cannot be built, or nil
	builds, writes    time.Duration // time to build the message, and to write it
	lasts             time.Duration // duration of its request
	outcome           measure.Outcome
	usage             measure.Usage
	text              []byte
	end               time.Time // end of its answer
	over              bool      // the answer has ended
	slow              bool      // feeder.slow has been added to its reading
}

func (d *draft) String() string { return strconv.Itoa(d.n) + "=" + d.due.ID() }

// A play holds the events of one seed.
type play struct {
	*testing.T
	decider
	terms
	score

	seed    uint64
	rnd     *rand.Rand
	rows    []trace.Record
	plan    schedule.Loop // the first loop
	period  time.Duration
	loops   int64 // number of loops
	unit    time.Duration
	failing int           // percent of the requests
	late    bool          // an overdue tick comes before overdue events of the calendar
	set     time.Duration // sum of the steps of the wall clock
	now     limits.Load
	blind   error

	calendar []event // earliest first
	feed     feeder
	rowsRead int
	building *draft
	flying   []*draft
	stopped  bool
}

// An event happens at a time, or later if the process is stopped then.
type event struct {
	at time.Time
	do func(at time.Time)
}

// A feeder reads the plan.
type feeder struct {
	loop  int64
	next  int           // row
	from  time.Time     // earlier rows of the loop are skipped
	begun bool          // the loop has begun
	slow  time.Duration // time to read a row
	row   *draft        // read, but not handed over yet
	after time.Time     // no row is read before
	read  bool          // all rows of the loop were read
	ended bool
}

// playDecisions plays the events of a seed and returns the decisions as text.
func playDecisions(t *testing.T, seed uint64, start func(testing.TB, terms, *score) decider) string {
	p := &play{T: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 20))}
	p.origin = time.Now()
	p.wall = func() time.Time { return time.Now().Add(p.set).Round(0) }
	p.load = func() (limits.Load, error) { return p.now, p.blind }
	p.sends = p.send
	p.open = map[limits.Limit]bool{}
	p.draw()
	p.decider = start(t, p.terms, &p.score)
	p.script()
	p.run()
	fmt.Fprintf(&p.text, "%+v\n", p.total)
	return p.text.String()
}

// upTo returns a random duration below ms milliseconds, a multiple of unit.
func (p *play) upTo(ms int) time.Duration {
	return time.Duration(p.rnd.Int64N(int64(ms)*int64(time.Millisecond)/int64(p.unit))) * p.unit
}

func (p *play) one(in int) bool { return p.rnd.IntN(in) == 0 }

// draw draws the terms and the plan.
func (p *play) draw() {
	p.unit = []time.Duration{time.Nanosecond, time.Millisecond, 20 * time.Millisecond}[p.rnd.IntN(3)]
	p.terms = terms{
		closed: p.one(2), hold: p.one(2), carry: p.one(3), dropLate: p.one(4), followsWall: p.one(2),
		lanes: 1 + p.rnd.IntN(5), ahead: []int{1, 4000, 8 << 20}[p.rnd.IntN(3)], maxWait: p.upTo(2000) * time.Duration(p.rnd.IntN(3)),
	}
	if p.one(8) {
		p.duration = 20*time.Millisecond + p.upTo(5000)
	}
	p.guard.ResumeAfter = p.upTo(3000) * time.Duration(p.rnd.IntN(2))
	switch p.rnd.IntN(6) {
	case 0, 1:
		p.guard.ErrorRatio = 0.3
	case 2:
		p.guard.ErrorRatio, p.guard.Waiting = 0.3, 10
	case 3:
		p.guard.Waiting, p.guard.KVCacheUsage = 10, 0.9
	}
	if p.one(3) {
		p.guard.OnMissingMetrics = limits.BlindGo
	}
	if p.one(4) {
		p.budget = limits.Budget{
			RequestsPerMinute: int64(p.rnd.IntN(60)), PromptTokensPerHour: int64(p.rnd.IntN(2) * p.rnd.IntN(3000)),
			OutputTokensPerDay: int64(p.rnd.IntN(2) * p.rnd.IntN(3000)),
		}
	}
	p.failing = []int{0, 10, 50}[p.rnd.IntN(3)]
	p.late = p.one(2)
	p.feed.slow = p.upTo(100) * time.Duration(p.rnd.IntN(5)/4)

	talk := p.rnd.IntN(8) // of eight rows, how many belong to a session
	p.rows = make([]trace.Record, 1+p.rnd.IntN(80))
	at := time.Duration(0)
	for i := range p.rows {
		at += p.upTo(200) * time.Duration(p.rnd.IntN(3))
		p.rows[i] = trace.Record{Number: i, Offset: at, InputTokens: p.rnd.IntN(100), OutputTokens: p.rnd.IntN(100)}
		if k := p.rnd.IntN(8); k < talk {
			p.rows[i].Session = fmt.Sprint("s", k)
			p.rows[i].Delay = p.upTo(300) * time.Duration(p.rnd.IntN(3))
			p.rows[i].Gap = p.upTo(300) * time.Duration(p.rnd.IntN(4)/3)
		}
	}
	p.plan.Start = p.wall().Add(p.upTo(4000) - 2*time.Second)
	p.loops = int64(1 + p.rnd.IntN(3))
	if p.period = at + p.upTo(2000) + time.Millisecond; p.closed {
		p.period = 0
	}
}

// script draws the events that do not depend on decisions.
func (p *play) script() {
	span := int(2*time.Second+p.rows[len(p.rows)-1].Offset)/int(time.Millisecond) + 1
	for range p.rnd.IntN(6) {
		at, lasts := p.upTo(span), p.upTo(3000)
		switch p.rnd.IntN(8) {
		case 0, 1:
			p.after(at, func(time.Time) { p.pause(true) })
			p.after(at+lasts, func(time.Time) { p.pause(false) })
		case 2, 3:
			load, blind := limits.Load{Waiting: float64(p.rnd.IntN(20)), KVCacheUsage: p.rnd.Float64()}, error(nil)
			if p.one(3) {
				load, blind = limits.Load{Waiting: math.NaN(), KVCacheUsage: math.NaN()}, errors.New("not scraped")
			}
			p.after(at, func(time.Time) { p.weather(load, blind) })
			p.after(at+lasts, func(time.Time) { p.weather(limits.Load{}, nil) })
		case 4:
			p.after(at, func(time.Time) { <-time.After(lasts + time.Nanosecond) })
		case 5:
			by := []time.Duration{-600 * time.Millisecond, 1500 * time.Millisecond, -2 * time.Second, -time.Minute, 8 * time.Second}[p.rnd.IntN(5)]
			p.after(at, func(time.Time) {
				p.set += by
				p.look()
			})
		case 6:
			p.after(at, func(time.Time) { p.retire(p.wall().Add(lasts - time.Second)) })
		case 7:
			if p.one(2) {
				p.after(at, func(time.Time) { p.finish() })
				p.after(at+lasts, func(time.Time) { p.cut() })
			}
		}
	}
	const horizon = 5 * time.Minute
	p.after(horizon, func(time.Time) { p.finish() })
	p.after(horizon+30*time.Second, func(time.Time) { p.cut() })
}

func (p *play) weather(l limits.Load, err error) {
	p.now, p.blind = l, err
	p.look()
}
