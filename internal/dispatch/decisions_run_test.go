package dispatch_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"replayd/internal/measure"
	"replayd/internal/schedule"
)

// after inserts an event into the calendar, behind other events of the same time.
func (p *play) after(span time.Duration, do func(at time.Time)) {
	at := time.Now().Add(span)
	i := len(p.calendar)
	for i > 0 && p.calendar[i-1].at.After(at) {
		i--
	}
	p.calendar = slices.Insert(p.calendar, i, event{at, do})
}

// maxAtOnce bounds the events at one time. More events mean an endless loop.
const maxAtOnce = 10_000

// run executes the events until none is left. Before each event it reads the clocks and the load, so guard and clocks
// are judged at the same times for every decider.
func (p *play) run() {
	p.feed.from = p.wall()
	if p.plan.Start.After(p.feed.from) {
		p.feed.from = p.plan.Start
	}
	p.bound(p.feed.from)
	var look time.Time
	for n := 0; ; n++ {
		p.follow()
		if p.done() {
			break
		}
		wake := p.wake()
		now, at := time.Now(), p.calendar[0].at
		for _, other := range []time.Time{look, wake, p.feed.after} {
			if !other.IsZero() && other.Before(at) {
				at = other
			}
		}
		if at.After(now) {
			p.flush()
			<-time.After(at.Sub(now))
			now, n = at, 0
		}
		if n > maxAtOnce {
			p.Fatalf("seed %d: no end at %v, asleep until %v, feed %+v:\n%s", p.seed, p.since(now), p.since(wake), p.feed, p.text.String())
		}
		p.look()
		look = now.Add(p.rest(now))
		ticks, first := !wake.IsZero() && !wake.After(now), p.calendar[0]
		switch {
		case !first.at.After(now) && (!ticks || !p.late):
			p.calendar = p.calendar[1:]
			first.do(first.at)
		case ticks:
			p.tick()
		}
	}
	p.flush()
}

// follow lets the feed and the builder check for work after each event.
func (p *play) follow() {
	if p.retired && !p.stopped {
		p.finish()
	}
	for more := true; more; {
		more = p.readOn()
		if p.building == nil {
			if p.building = p.build(); p.building != nil {
				p.after(p.building.builds, func(time.Time) {
					d := p.building
					p.building = nil
					p.built(d)
				})
			}
		}
		if p.retired && !p.stopped {
			p.finish()
		}
	}
}

// readOn takes one step of the feed. It returns false if the feed has to wait or has ended.
func (p *play) readOn() bool {
	f := &p.feed
	now := time.Now()
	if f.ended || f.after.After(now) {
		return false
	}
	f.after = time.Time{}
	l := schedule.Loop{Number: f.loop, Start: p.plan.Start.Add(time.Duration(f.loop) * p.period)}
	if !f.begun {
		p.begin(l, p.period)
		f.begun, f.next = true, 0
		return true
	}
	for !p.closed && f.next < len(p.rows) && l.Start.Add(p.rows[f.next].Offset).Before(f.from) {
		f.next++
	}
	if f.next < len(p.rows) {
		if f.row == nil {
			f.row = p.draft(l, f.next)
		}
		if !p.mayRead(f.row.due.At) {
			return false
		}
		if f.slow > 0 && !f.row.slow {
			f.row.slow, f.after = true, now.Add(f.slow)
			return true
		}
		d := f.row
		f.row = nil
		f.next++
		return p.obey(p.hand(d), 0)
	}
	if !f.read {
		f.read = true
		p.loopRead(f.loop)
	}
	if f.loop+1 == p.loops {
		p.endFeed(false)
		return false
	}
	if !p.mayRead(l.Start.Add(p.period)) {
		return false
	}
	f.loop, f.begun, f.read, f.from = f.loop+1, false, false, time.Time{}
	return true
}

// mayRead reports whether a row that the loop plans for a time may be read.
func (p *play) mayRead(planned time.Time) bool {
	may, wait := p.room(p.feed.loop, planned)
	return p.obey(may, wait)
}

// obey applies a room to the feed, and reports whether to read on.
func (p *play) obey(may room, wait time.Duration) bool {
	f := &p.feed
	switch may {
	case free:
		return true
	case early:
		f.after = time.Now().Add(wait)
	case enough, another:
		p.endFeed(may == another)
	case anew:
		f.row, f.begun, f.read, f.from = nil, false, false, p.wall()
		f.loop = min(p.loops-1, max(0, int64(f.from.Sub(p.plan.Start)/p.period)))
	}
	return false
}

func (p *play) endFeed(failed bool) {
	p.feed.ended, p.feed.after = true, time.Time{}
	p.fed(failed)
}

// draft draws what will happen to a row.
func (p *play) draft(l schedule.Loop, row int) *draft {
	d := &draft{n: p.rowsRead, due: schedule.Due{Record: p.rows[row], At: l.Start, Loop: l}, outcome: measure.OK}
	p.rowsRead++
	if !p.closed {
		d.due.At = l.Start.Add(d.due.Offset)
	}
	was := p.rnd
	p.rnd = rand.New(rand.NewPCG(p.seed, uint64(1000+d.n)))
	defer func() { p.rnd = was }()
	switch p.rnd.IntN(40) {
	case 0, 1:
		d.filtered = true
	case 2, 3:
		d.clipped = true
	case 4:
		d.err = errors.New("no message")
	}
	d.builds = p.upTo(60) * time.Duration(p.rnd.IntN(4)/3)
	d.writes = p.upTo(60) * time.Duration(p.rnd.IntN(4)/3)
	d.lasts = d.writes + p.upTo(300)*time.Duration(p.rnd.IntN(3))
	if p.rnd.IntN(100) < p.failing {
		d.outcome = []measure.Outcome{
			measure.HTTP5xx, measure.ConnectFailed, measure.TimeoutFirstToken, measure.Cancelled, measure.TimeoutConnect,
		}[p.rnd.IntN(5)]
	}
	d.usage = measure.Usage{Prompt: p.rnd.IntN(150), Output: p.rnd.IntN(150), Source: measure.UsageFinal}
	if p.one(4) {
		d.usage.Source = measure.UsageCounted
	}
	d.text = make([]byte, p.rnd.IntN(2000))
	return d
}

// send schedules the write and the answer of a row's request.
func (p *play) send(d *draft) {
	p.flying = append(p.flying, d)
	if d.outcome != measure.ConnectFailed && d.outcome != measure.TimeoutConnect {
		p.after(d.writes, func(time.Time) {
			if !d.over {
				p.written(d)
			}
		})
	}
	p.after(d.lasts, func(at time.Time) { p.answered(d, at) })
}

// answered ends a request, unless it has ended.
func (p *play) answered(d *draft, at time.Time) {
	if d.over {
		return
	}
	d.over, d.end = true, at
	p.flying = slices.DeleteFunc(p.flying, func(other *draft) bool { return other == d })
	p.ended(d)
}

// finish stops new work, like a stop by an operator.
func (p *play) finish() {
	if p.stopped || p.done() {
		return
	}
	p.stopped = true
	p.note("stop")
	p.stop()
	if !p.feed.ended {
		p.endFeed(true)
	}
}

// cut aborts the requests in flight, like the end of the drain time.
func (p *play) cut() {
	if !p.stopped {
		return
	}
	for len(p.flying) > 0 {
		d := p.flying[0]
		d.outcome = measure.Aborted
		p.answered(d, time.Now())
	}
}
