package main

import (
	"container/heap"
	"time"

	"replayd/internal/sim"
)

// An Arrival is a request in virtual time.
type Arrival struct {
	ID     string // for the noise
	At     time.Duration
	Prompt int      // tokens, those of the chat template included
	Output int      // tokens
	Keys   []uint64 // of the prompt's whole blocks; nil: nothing of it is cached
}

// A Played request has the instants of its first and its last token, since the start.
type Played struct {
	Refused     bool // the queue was full
	Cached      int  // prompt tokens
	First, Last time.Duration
}

// Play runs an engine without HTTP and without waiting, and returns the times of each request. The arrivals are in
// order of time. It injects no faults.
func Play(o sim.Options, arrivals []Arrival) ([]Played, error) {
	batch, err := sim.NewBatch(o)
	if err != nil {
		return nil, err
	}
	p := &player{options: o, arrivals: arrivals, played: make([]Played, len(arrivals)), batch: batch}
	if o.StepTokens > 0 {
		p.runShared()
	} else {
		p.run()
	}
	return p.played, nil
}

// A player is a run of Play.
type player struct {
	options  sim.Options
	arrivals []Arrival
	played   []Played
	batch    *sim.Batch
	events   events
}

// enter adds an arrival to the batch. It returns nil if the queue is full.
func (p *player) enter(i int) *sim.Seat {
	a := &p.arrivals[i]
	s, err := p.batch.Enter(start.Add(a.At), a.ID, a.Prompt, a.Keys, a.Output)
	if err != nil {
		p.played[i].Refused = true
		return nil
	}
	return s
}

func (p *player) runShared() {
	seats := make(map[*sim.Seat]int)
	settle := func() {
		for s, i := range seats {
			if first, last, whole := s.Answered(); whole {
				p.played[i] = Played{Cached: s.Cached(), First: first.Sub(start), Last: last.Sub(start)}
				delete(seats, s)
			}
		}
	}
	for i := range p.arrivals {
		p.batch.Advance(start.Add(p.arrivals[i].At))
		if s := p.enter(i); s != nil {
			seats[s] = i
		}
		if len(seats) > 4*p.options.Slots {
			settle()
		}
	}
	for ends := p.batch.StepEnds(); !ends.IsZero(); ends = p.batch.StepEnds() {
		p.batch.Advance(ends)
	}
	settle()
}

// An event is the end of a prefill, or of a chunk of an answer.
type event struct {
	at   time.Time
	seat *sim.Seat
	of   int // the arrival
	sent int // output tokens before it
	adds int // output tokens ready at it
}

func (p *player) run() {
	of := make(map[*sim.Seat]int)
	granted := func() {
		for _, s := range p.batch.Admitted() {
			heap.Push(&p.events, event{at: p.batch.PrefillEnds(s), seat: s, of: of[s], adds: 1})
			delete(of, s)
		}
	}
	for i := 0; i < len(p.arrivals) || len(p.events) > 0; {
		if i < len(p.arrivals) && (len(p.events) == 0 || start.Add(p.arrivals[i].At).Before(p.events[0].at)) {
			if s := p.enter(i); s != nil {
				of[s] = i
			}
			i++
		} else {
			p.step(heap.Pop(&p.events).(event))
		}
		granted()
	}
}

// step handles an event.
func (p *player) step(e event) {
	s, got, output := e.seat, &p.played[e.of], p.arrivals[e.of].Output
	if e.sent == 0 {
		p.batch.Prefilled(s, e.at)
		got.Cached, got.First = s.Cached(), e.at.Sub(start)
	}
	e.sent += e.adds
	gap := p.batch.Decoded(s, e.adds)
	if e.sent >= output {
		got.Last = e.at.Sub(start)
		p.batch.Leave(s, e.at)
		return
	}
	e.adds = min(p.options.ChunkTokens, output-e.sent)
	e.at = e.at.Add(gap * time.Duration(e.adds))
	heap.Push(&p.events, e)
}

// events is a heap by instant.
type events []event

func (h events) Len() int           { return len(h) }
func (h events) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h events) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push and Pop are heap.Interface's.
func (h *events) Push(x any) { *h = append(*h, x.(event)) }

func (h *events) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*h = old[:len(old)-1]
	return e
}
