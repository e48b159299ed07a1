package sim

import (
	"container/heap"
	"time"
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

// Play runs an engine without HTTP and without waiting, and returns the times of each request. The arrivals are in order of time. The engine is the
// one that New serves: the same batch, cache and noise. It injects no faults.
func Play(o Options, arrivals []Arrival) ([]Played, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	p := &player{
		arrivals: arrivals, played: make([]Played, len(arrivals)), start: time.Unix(0, 0),
		batch: &batch{
			options: o, virtual: true, power: &power{slots: o.Slots, at: time.Unix(0, 0)},
			cache: newCache(o.CacheTokens / o.BlockTokens), observe: func(int) {},
		},
	}
	if p.batch.isShared() {
		p.runShared()
	} else {
		p.run()
	}
	return p.played, nil
}

// A player is a run of Play.
type player struct {
	arrivals []Arrival
	played   []Played
	start    time.Time
	batch    *batch
	events   events
}

// enter adds an arrival to the batch. It returns nil if the queue is full.
func (p *player) enter(i int) *seat {
	a := &p.arrivals[i]
	s, err := p.batch.enter(p.start.Add(a.At), work{a.Prompt, a.Keys, a.Output, p.batch.options.pace(a.ID)})
	if err != nil {
		p.played[i].Refused = true
		return nil
	}
	return s
}

func (p *player) runShared() {
	seats := make(map[*seat]int)
	settle := func() {
		for s, i := range seats {
			if s.left == 0 && s.output >= s.length && s.waiting == nil {
				p.played[i] = Played{Cached: s.cached, First: s.first.Sub(p.start), Last: s.last.Sub(p.start)}
				delete(seats, s)
			}
		}
	}
	for i := range p.arrivals {
		p.batch.advance(p.start.Add(p.arrivals[i].At))
		if s := p.enter(i); s != nil {
			seats[s] = i
		}
		if len(seats) > 4*p.batch.options.Slots {
			settle()
		}
	}
	for !p.batch.ends.IsZero() {
		p.batch.advance(p.batch.ends)
	}
	settle()
}

// An event is the end of a prefill, or of a chunk of an answer.
type event struct {
	at   time.Time
	seat *seat
	of   int // the arrival
	sent int // output tokens before it
	adds int // output tokens ready at it
}

func (p *player) run() {
	of := make(map[*seat]int)
	granted := func() {
		for _, s := range p.batch.admitted {
			o := p.batch.options
			at := s.began.Add(scale(o.prefill(s.prompt-s.cached), s.pace.prefill))
			heap.Push(&p.events, event{at: at, seat: s, of: of[s], adds: 1})
			delete(of, s)
		}
		p.batch.admitted = p.batch.admitted[:0]
	}
	for i := 0; i < len(p.arrivals) || len(p.events) > 0; {
		if i < len(p.arrivals) && (len(p.events) == 0 || p.start.Add(p.arrivals[i].At).Before(p.events[0].at)) {
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
	s, got := e.seat, &p.played[e.of]
	if e.sent == 0 {
		p.batch.prefilled(s, e.at)
		got.Cached, got.First = s.cached, e.at.Sub(p.start)
	}
	e.sent += e.adds
	gap := p.batch.decoded(s, e.adds)
	if e.sent >= s.length {
		got.Last = e.at.Sub(p.start)
		p.batch.leave(s, e.at)
		return
	}
	e.adds = min(p.batch.options.ChunkTokens, s.length-e.sent)
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
