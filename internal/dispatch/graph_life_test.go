package dispatch

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"replayd/internal/measure"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// A graphRow is a row of a random graph, and what has happened to it.
type graphRow struct {
	*Row
	parents []trace.Edge // those of its edges that name an earlier row of its session
	planned time.Time
	read    bool

	expected, sent, dropped, filtered int
	why                               measure.DropReason
	flying                            bool
	outcome                           measure.Outcome // "": it has not ended
	end                               time.Time
	send, write, first                time.Time
}

// A graphLife plays random rows with parents against a dispatcher, and checks each of its actions.
type graphLife struct {
	rnd   *rand.Rand
	d     *Dispatcher
	rows  []*graphRow
	index map[*Row]*graphRow
	now   time.Time
	wake  time.Time
	build *Row
	stop  bool
	done  bool
	fault error

	sessions map[string]*graphSession // those that have begun
	sequence bool                     // rows are read session by session
}

func (row *graphRow) failed() bool {
	return row.outcome != "" && row.outcome != measure.OK && row.outcome != measure.Cancelled
}

func (g *graphLife) failf(row *graphRow, format string, args ...any) {
	if g.fault == nil {
		g.fault = fmt.Errorf("at %v, row %d after %v: %s", g.now.Sub(epoch), row.Due.Number, row.parents, fmt.Sprintf(format, args...))
	}
}

func newGraphLife(seed uint64) *graphLife {
	rnd := rand.New(rand.NewPCG(seed, 30))
	g := &graphLife{rnd: rnd, index: map[*Row]*graphRow{}, now: epoch, sessions: map[string]*graphSession{}}
	g.d = New(Config{
		Lanes: 1 + rnd.IntN(6), Closed: rnd.IntN(3) == 0, HoldLanes: rnd.IntN(2) == 0, History: rnd.IntN(3) == 0,
		DropLate: rnd.IntN(6) == 0, MaxWait: time.Duration(rnd.IntN(3)/2*rnd.IntN(80)) * time.Millisecond, Ahead: 1 << 20,
	})
	if g.sequence = rnd.IntN(2) == 0; g.sequence && g.d.closed != nil && rnd.IntN(4) > 0 {
		c := g.d.Config
		c.Sessions, c.HoldLanes = 1+rnd.IntN(4), false
		g.d = New(c)
	}
	g.draw()
	g.step(Event{Kind: Bounds, At: epoch, Period: time.Duration(rnd.IntN(4)/3*(1+rnd.IntN(900))) * time.Millisecond})
	g.step(Event{Kind: LoopBegun, Plan: schedule.Loop{Start: epoch}})
	return g
}

func (g *graphLife) ms(n int) time.Duration { return time.Duration(g.rnd.IntN(n)) * time.Millisecond }

// draw draws the rows. An edge can name any row: also the row itself, a later one, one of another session, or none.
func (g *graphLife) draw() {
	n := 1 + g.rnd.IntN(60)
	offsets := make([]time.Duration, n)
	at := time.Duration(0)
	for i := range n {
		at += g.ms(40) * time.Duration(g.rnd.IntN(3)/2)
		rec := trace.Record{Number: i, Session: fmt.Sprint("s", g.rnd.IntN(3)), Offset: at}
		if g.sequence { // all rows of a session are planned for its start
			rec.Session = fmt.Sprint("s", (i/10*7+1)%8)
			if rec.Offset = at; i%10 > 0 {
				rec.Offset, at = g.rows[i-1].Due.Offset, g.rows[i-1].Due.Offset
			}
		}
		row := &graphRow{}
		if rec.Session != "s0" { // the rows of s0 come one after the other
			rec.After, rec.Floating = []trace.Edge{}, g.rnd.IntN(2) == 0
		}
		for range g.rnd.IntN(4) * min(1, len(rec.Session)) {
			if rec.After == nil {
				break
			}
			e := trace.Edge{Row: g.rnd.IntN(n+2) - 1, Wait: g.ms(60) * time.Duration(g.rnd.IntN(2))}
			if g.rnd.IntN(3) > 0 {
				e.Row = max(0, i-1-g.rnd.IntN(6))
			}
			rec.After = append(rec.After, e)
			if e.Row >= 0 && e.Row < i && g.rows[e.Row].Due.Session == rec.Session {
				row.parents = append(row.parents, e)
			}
		}
		var earliest time.Duration
		for _, e := range row.parents {
			earliest = max(earliest, offsets[e.Row]+e.Wait)
		}
		switch {
		case g.sequence && rec.After != nil && i%10 > 0 && g.rnd.IntN(4) == 0:
			rec.Since = g.ms(200)
		case g.sequence:
		case rec.Floating:
			rec.Offset = earliest
		default:
			rec.Offset = max(rec.Offset, earliest)
		}
		if rec.Session == "s0" {
			rec.Delay = g.ms(30)
			for k := i - 1; k >= 0 && row.parents == nil; k-- {
				if p := g.rows[k]; p.Due.Session == "s0" && !p.Filtered {
					row.parents = []trace.Edge{{Row: k, Wait: rec.Delay}}
				}
			}
		}
		offsets[i] = rec.Offset
		row.Row = &Row{
			Due: schedule.Due{Record: rec, At: epoch.Add(rec.Offset)}, Seq: int64(i), Weight: 100 + i, Size: 100,
			Filtered: g.rnd.IntN(12) == 0,
		}
		row.planned = row.Due.At
		if g.d.closed != nil {
			row.Due.At, row.planned = epoch, time.Time{}
		}
		g.rows, g.index[row.Row] = append(g.rows, row), row
	}
	opened, seen := map[string]bool{}, map[string]bool{}
	order := slices.Clone(g.rows)
	slices.SortStableFunc(order, func(a, b *graphRow) int { return a.planned.Compare(b.planned) })
	marks := g.rnd.IntN(4) > 0 || g.d.Sessions > 0
	for _, row := range order {
		row.Due.First = !opened[row.Due.Session]
		opened[row.Due.Session] = true
	}
	for _, row := range slices.Backward(order) {
		row.Due.Last = marks && !seen[row.Due.Session]
		seen[row.Due.Session] = true
	}
}

// step passes an event on and checks the actions.
func (g *graphLife) step(e Event) {
	for _, a := range g.d.Step(Clock{g.now, g.now}, e) {
		row := g.index[a.Row]
		switch a.Kind {
		case SessionBegun:
			if s := g.sessions[row.Due.Session]; s != nil {
				g.failf(row, "session begun twice")
			}
			g.sessions[row.Due.Session] = &graphSession{begun: row.Due.At}
			g.inProgress(row)
		case SessionEnded:
			s := g.sessions[a.Session.Name]
			switch {
			case s == nil || s.end != nil:
				g.fault = fmt.Errorf("session %s has ended twice, or without a begin", a.Session.Name)
			case !a.Session.Begun.Equal(s.begun) && !row.isFiltered():
				g.fault = fmt.Errorf("session %s: want begun %v, got %v", a.Session.Name, s.begun, a.Session.Begun)
			default:
				s.end = a.Session
			}
		case Expect:
			row.expected++
		case Send:
			row.sent++
			row.flying, row.send = true, g.now
			g.mayGo(row)
		case Drop:
			row.dropped++
			row.why = a.Reason
		case Filter:
			row.filtered++
			row.end = g.now
		case Build:
			g.build = a.Row
		case Release:
			a.Row.Message.Body = nil
		case WakeAt:
			g.wake = a.At
		case Done:
			g.done = true
		}
	}
	if err := g.balance(); err != nil && g.fault == nil {
		g.fault = fmt.Errorf("at %v: %w", g.now.Sub(epoch), err)
	}
}

// mayGo checks that a row that is sent has come to its instant, exactly.
func (g *graphLife) mayGo(row *graphRow) {
	soonest := row.planned
	for _, e := range row.parents {
		p := g.rows[e.Row]
		switch {
		case p.Filtered && p.filtered == 0 && p.Due.After != nil:
			g.failf(row, "sent before row %d, which is filtered, was due", e.Row)
		case p.Filtered && g.d.closed != nil:
			soonest = latest(soonest, p.end.Add(e.Wait))
		case p.Filtered:
			soonest = latest(soonest, g.endOf(p).Add(e.Wait))
		case p.outcome != measure.OK && p.outcome != measure.Cancelled:
			g.failf(row, "sent, with row %d %q", e.Row, p.outcome)
		default:
			soonest = latest(soonest, p.end.Add(e.Wait))
		}
	}
	if begun := g.sessions[row.Due.Session].begun; row.Due.Since > 0 {
		soonest = latest(soonest, begun.Add(row.Due.Since))
	}
	if row.Ready.Before(soonest) || g.d.closed == nil && !row.Ready.Equal(soonest) {
		g.failf(row, "want ready %v, got %v", soonest.Sub(epoch), row.Ready.Sub(epoch))
	}
	if g.d.closed == nil && row.namesParents() && !row.Due.At.Equal(soonest) {
		g.failf(row, "want due %v, got %v", soonest.Sub(epoch), row.Due.At.Sub(epoch))
	}
}

// endOf is the end of a filtered row: its instant, or when its parents allowed it.
func (g *graphLife) endOf(row *graphRow) time.Time {
	end := row.planned
	if row.Due.Since > 0 {
		end = latest(end, g.sessions[row.Due.Session].begun.Add(row.Due.Since))
	}
	for _, e := range row.parents {
		p := g.rows[e.Row]
		at := p.end
		if p.Filtered {
			at = g.endOf(p)
		}
		if row.namesParents() {
			end = latest(end, at.Add(e.Wait))
		}
	}
	return end
}

// balance checks the ledger and the bytes of the rows that are not due.
func (g *graphLife) balance() error {
	var expected, finished, dropped, flying, waiting, weight int
	for _, row := range g.rows {
		if row.expected > 1 || row.sent+row.dropped+row.filtered > 1 || row.sent+row.dropped > row.expected {
			return fmt.Errorf("row %d: expected %d, sent %d, dropped %d, filtered %d times",
				row.Due.Number, row.expected, row.sent, row.dropped, row.filtered)
		}
		expected += row.expected
		dropped += row.dropped
		switch {
		case row.outcome != "":
			finished++
		case row.flying:
			flying++
		case row.expected > row.dropped:
			waiting++
		case row.read && row.expected == 0 && row.state != gone:
			weight += row.Weight
		}
	}
	if expected != finished+dropped+flying+waiting || g.d.flying != flying || g.d.weight != weight {
		return fmt.Errorf("expected %d, finished %d, dropped %d, in flight %d (%d), waiting %d, weight %d (%d)",
			expected, finished, dropped, flying, g.d.flying, waiting, weight, g.d.weight)
	}
	if taken := g.d.Slots.taken; taken != g.d.waiting.n+flying {
		return fmt.Errorf("%d slots taken, %d rows wait for a lane, %d in flight", taken, g.d.waiting.n, flying)
	}
	return nil
}

// run plays the rows until nothing is left.
func (g *graphLife) run() error {
	const horizon = time.Minute
	next, order := 0, slices.Clone(g.rows)
	slices.SortStableFunc(order, func(a, b *graphRow) int { return a.planned.Compare(b.planned) })
	ahead, lazy := g.ms(2000), g.rnd.IntN(3)
	for !g.done && g.fault == nil {
		if g.now = g.now.Add(time.Millisecond); g.now.Sub(epoch) > horizon {
			return fmt.Errorf("no end: %d rows read, %d in flight, wake at %v", next, g.d.flying, g.wake.Sub(epoch))
		}
		for !g.stop && next < len(order) && !order[next].planned.After(g.now.Add(ahead)) {
			room, _ := g.d.Room(g.d.Loop(0), epoch.Add(order[next].Due.Offset), g.now)
			if g.d.closed == nil && room == Over || g.d.closed != nil && room != Free {
				break
			}
			order[next].read = true
			g.step(Event{Kind: RowRead, Loop: g.d.Loop(0), Row: order[next].Row})
			next++
		}
		over, _ := g.d.Room(g.d.Loop(0), g.now, g.now)
		if !g.stop && (next == len(order) || over == Over) && !g.d.fed {
			g.step(Event{Kind: LoopRead, Loop: g.d.Loop(0)})
			g.step(Event{Kind: FeedEnded})
		}
		g.happen(lazy)
		if !g.wake.IsZero() && !g.wake.After(g.now) {
			g.step(Event{Kind: Tick})
		}
	}
	return cmp.Or(g.fault, g.ended(), g.endedWell())
}

// happen ends builds and requests at random, pauses, and stops.
func (g *graphLife) happen(lazy int) {
	if g.build == nil {
		g.step(Event{Kind: Poll})
	}
	if r := g.build; r != nil && g.rnd.IntN(1+lazy) == 0 {
		g.build = nil
		g.step(Event{Kind: Built, Row: r, Message: Message{Body: []byte("x")}})
	}
	for _, row := range g.rows {
		if row.flying && row.outcome == "" && g.rnd.IntN(20) == 0 {
			row.flying, row.end = false, g.now
			row.outcome = []measure.Outcome{measure.OK, measure.Cancelled, measure.HTTP5xx}[max(0, g.rnd.IntN(20)-17)]
			row.write = row.send.Add(time.Duration(g.rnd.Int64N(int64(g.now.Sub(row.send)) + 1)))
			if g.rnd.IntN(4) > 0 {
				row.first = row.write.Add(time.Duration(g.rnd.Int64N(int64(g.now.Sub(row.write)) + 1)))
			}
			g.step(Event{
				Kind: Ended, Row: row.Row, Outcome: row.outcome, Write: row.write, First: row.first, At: g.now, Text: []byte("a"),
				Usage: measure.Usage{Prompt: 10, Cached: row.Due.Number % 7, CacheReported: row.Due.Number%7 > 0},
			})
		}
	}
	switch g.rnd.IntN(1500) {
	case 0:
		g.step(Event{Kind: Pause, On: true})
	case 1, 2, 3, 4, 5, 6, 7, 8, 9:
		g.step(Event{Kind: Pause})
	case 10: // the process stands still
		g.now = g.now.Add(time.Second + g.ms(1000))
	case 11:
		g.stop = true
		g.step(Event{Kind: Stop})
		g.step(Event{Kind: FeedEnded})
	}
}

// ended checks each row's fate when nothing is left.
func (g *graphLife) ended() error {
	for _, row := range g.rows {
		if row.flying || row.read && row.state != gone {
			return fmt.Errorf("row %d is left", row.Due.Number)
		}
		if row.why == measure.SessionFailed && !slices.ContainsFunc(g.rows, func(p *graphRow) bool {
			return p.failed() && g.comesAfter(row, p)
		}) {
			return fmt.Errorf("row %d is dropped, and no row that it comes after failed", row.Due.Number)
		}
		if row.failed() || row.dropped == 1 {
			for _, child := range g.rows {
				if child.sent == 1 && g.comesAfter(child, row) {
					return fmt.Errorf("row %d is sent, and comes after row %d", child.Due.Number, row.Due.Number)
				}
			}
		}
	}
	return nil
}

// comesAfter reports whether a row comes after another, over any number of edges.
func (g *graphLife) comesAfter(row, other *graphRow) bool {
	return slices.ContainsFunc(row.parents, func(e trace.Edge) bool {
		return g.rows[e.Row] == other || g.comesAfter(g.rows[e.Row], other)
	})
}
