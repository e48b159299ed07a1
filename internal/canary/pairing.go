package canary

import "time"

// A Cause is the party responsible for the end of a request.
type Cause int

// Causes.
const (
	None   Cause = iota
	Server       // counts against the side: a failure, no free lane, its guard
	Client       // replayd, which makes the pair void: a pause, the budget, a stop, its own lateness
)

// A Half is one side's request of a row after its end.
type Half struct {
	Request
	Cause Cause
	Ready time.Time // when the request could have been sent; zero: it was not sent
}

// mostDrift is the greatest distance between the two requests of a turn, as a share of the time since the turn before.
const mostDrift = 0.1

// mostOpen bounds the pairs that wait for a request to end.
const mostOpen = 1 << 16

// A Pairing puts the requests of two sides together and passes the pairs on in the order of their instants. It is not safe for concurrent use.
type Pairing struct {
	add   func(*Pair)
	rows  map[string]*row
	order []*row // by instant; the first next have been passed on
	next  int
}

// A row is a pair that is not complete.
type row struct {
	id      string
	at      time.Time
	gap     time.Duration // of a later turn: planned time since the turn before; else 0
	halves  [2]Half
	due     [2]bool // the side has said that the row came due
	settled [2]bool
	apart   bool // the sides planned it for different instants
}

// sameInstant is the greatest distance between the instants for which the two sides plan a row. Each reads the clocks for itself.
const sameInstant = time.Millisecond

// NewPairing returns a pairing that passes pairs to add.
func NewPairing(add func(*Pair)) *Pairing { return &Pairing{add: add, rows: map[string]*row{}} }

// Due says that a row has come due on a side, which then settles it some time. Each side has its rows in the order of their instants. The gap is that of
// a later turn of a session.
func (p *Pairing) Due(side Side, id string, at time.Time, gap time.Duration) {
	if r := p.rows[id]; r != nil {
		r.due[side] = true
		r.apart = r.apart || r.at.Sub(at).Abs() > sameInstant
		return
	}
	if n := len(p.order); n > p.next && at.Before(p.order[n-1].at) {
		return // a side that comes late with a row that the other never had
	}
	r := &row{id: id, at: at, gap: gap}
	r.due[side] = true
	p.rows[id] = r
	p.order = append(p.order, r)
	if len(p.rows) > mostOpen {
		p.order[p.next].abandon()
		p.pass()
	}
}

// Settle ends a side's request of a row. A row that is not open is ignored: it was closed before.
func (p *Pairing) Settle(side Side, id string, h Half) {
	r := p.rows[id]
	if r == nil || r.settled[side] {
		return
	}
	r.halves[side], r.settled[side] = h, true
	p.pass()
}

// Close ends the wait for sides that have not said by now that a row planned before an instant came due there: their runner has not begun, or has
// ended. It makes the pair void. A request that goes on is waited for.
func (p *Pairing) Close(before time.Time) {
	for _, r := range p.order[p.next:] {
		if !r.at.Before(before) {
			break
		}
		for side := range r.due {
			if !r.due[side] {
				r.lose(Side(side))
			}
		}
	}
	p.pass()
}

// Forget drops all pairs that are not complete. What ends of them later is ignored.
func (p *Pairing) Forget() { p.rows, p.order, p.next = map[string]*row{}, nil, 0 }

// CloseAll ends the wait for all rows: nothing is in flight any more.
func (p *Pairing) CloseAll() {
	for _, r := range p.order[p.next:] {
		r.abandon()
	}
	p.pass()
}

func (r *row) abandon() {
	r.lose(Baseline)
	r.lose(Candidate)
}

// lose settles a side of which nothing is known.
func (r *row) lose(side Side) {
	if !r.settled[side] {
		r.halves[side], r.settled[side] = Half{Cause: Client}, true
	}
}

// pass passes on the pairs at the front that are complete.
func (p *Pairing) pass() {
	for p.next < len(p.order) && p.order[p.next].settled == [2]bool{true, true} {
		r := p.order[p.next]
		p.order[p.next] = nil
		p.next++
		delete(p.rows, r.id)
		p.add(r.pair())
	}
	if p.next > 64 && 2*p.next > len(p.order) {
		n := copy(p.order, p.order[p.next:])
		clear(p.order[n:])
		p.order, p.next = p.order[:n], 0
	}
}

// pair judges whether the two requests may be compared.
func (r *row) pair() *Pair {
	// Where a side has failed, the other one goes on alone, at its own instants.
	failed := r.halves[Baseline].Cause == Server || r.halves[Candidate].Cause == Server
	pair := &Pair{ID: r.id, At: r.at, Void: r.apart && !failed}
	for side, h := range r.halves {
		pair.Requests[side] = h.Request
		pair.Requests[side].Bad = h.Bad || h.Cause == Server
		pair.Void = pair.Void || h.Cause == Client
	}
	if base, cand := r.halves[Baseline].Ready, r.halves[Candidate].Ready; r.gap > 0 && !base.IsZero() && !cand.IsZero() {
		drift := base.Sub(cand).Abs()
		pair.Void = pair.Void || float64(drift) > mostDrift*float64(r.gap)
	}
	return pair
}
