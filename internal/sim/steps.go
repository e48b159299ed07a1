package sim

import (
	"slices"
	"time"
)

// steps are the shared steps of a batch with StepTokens. An engine step computes one token of each stream in decode, and with the rest of
// StepTokens the next tokens of prompts, in order of arrival. All of them are ready at the end of the step. A step takes the time of its
// decode and the time of its prefill together:
//
//	(1 + BatchCost·(n−1)) / DecodeRate · mean pace of the n streams in decode
//	+ Σ over prompts of (tokens / PrefillRate · pace of the request)
//
// Steps follow each other without a gap while there are requests. A request that arrives during a step may join the next one.
type steps struct {
	running []*Seat   // in order of admission
	ends    time.Time // of the step in progress; zero: the engine is idle
	timer   *time.Timer
}

// A stepSeat is the part of a seat that only shared steps use.
type stepSeat struct {
	left   int           // prompt tokens to compute
	chunk  int           // prompt tokens of the step in progress
	output int           // tokens that were produced
	steps  bool          // the step in progress computes an output token
	first  time.Time     // of the first output token
	last   time.Time     // of the latest output token
	ready  []time.Time   // instants of output tokens that next has not returned
	wake   chan struct{} // capacity 1: ready has grown
}

// Advance ends all steps that are over at an instant. The lock is held, or the batch is one of NewBatch.
func (b *Batch) Advance(now time.Time) {
	for !b.ends.IsZero() && !b.ends.After(now) {
		at := b.ends
		b.endStep(at)
		b.beginStep(at)
	}
}

// StepEnds returns the end of the step in progress; the zero time: there is none.
func (b *Batch) StepEnds() time.Time { return b.ends }

// Answered returns the instants of the first and the last token of an answer, if the streams share steps and it is
// whole.
func (s *Seat) Answered() (first, last time.Time, whole bool) {
	return s.first, s.last, s.left == 0 && s.output >= s.length && s.waiting == nil
}

// beginStep admits requests and plans a step that begins at an instant. The lock is held.
func (b *Batch) beginStep(at time.Time) {
	for b.queue.Len() > 0 && len(b.running) < b.options.Slots {
		s := b.queue.Front().Value.(*Seat)
		if s.entered.After(at) {
			break // it has arrived since; this step is planned late
		}
		b.admit(s, at)
		s.left = s.prompt - s.cached
		b.running = append(b.running, s)
	}
	if len(b.running) == 0 {
		b.ends = time.Time{}
		if s := b.queue.Front(); s != nil {
			b.beginStep(s.Value.(*Seat).entered)
		}
		return
	}
	room, streams, held := b.options.StepTokens, 0, 0.0
	for _, s := range b.running {
		if s.steps = s.left == 0; s.steps {
			room--
			streams++
			held += s.pace.decode
		}
	}
	var took time.Duration
	if streams > 0 {
		took = scale(b.options.gap(streams, b.kvTokens), held/float64(streams))
	}
	for _, s := range b.running {
		s.chunk = min(s.left, room)
		room -= s.chunk
		took += scale(b.options.prefill(s.chunk), s.pace.prefill)
	}
	b.ends = at.Add(took)
	b.prefilling, b.decoding = len(b.running)-streams, streams
	b.power.changes(at, b.prefilling, b.decoding)
}

// endStep hands out the tokens of a step. The lock is held.
func (b *Batch) endStep(at time.Time) {
	tokens := 0
	for _, s := range b.running {
		if s.chunk > 0 {
			tokens += s.chunk
			s.left -= s.chunk
			if s.left > 0 {
				continue
			}
			b.cache.store(s.keys)
			s.tokens = s.prompt
			b.kvTokens += s.prompt
		} else if !s.steps {
			continue
		}
		s.tokens++
		b.kvTokens++
		tokens++
		s.output++
		if s.output == 1 {
			s.first = at
		}
		s.last = at
		if b.virtual {
			continue
		}
		s.ready = append(s.ready, at)
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	b.observe(tokens)
	b.running = slices.DeleteFunc(b.running, func(s *Seat) bool {
		over := s.left == 0 && s.output >= s.length
		if over {
			b.kvTokens -= s.tokens
			s.tokens = 0
		}
		return over
	})
	if len(b.running) == 0 {
		b.prefilling, b.decoding = 0, 0
		b.power.changes(at, 0, 0)
	}
}

// next removes and returns the instant of a request's next output token; false: it is not ready.
func (b *Batch) next(s *Seat) (at time.Time, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(s.ready) == 0 {
		return at, false
	}
	at = s.ready[0]
	s.ready = s.ready[1:]
	return at, true
}

// follow sets the timer to the end of the step in progress. The lock is held.
func (b *Batch) follow() {
	switch {
	case b.ends.IsZero() || b.virtual:
		return
	case b.timer == nil:
		b.timer = time.AfterFunc(time.Until(b.ends), b.stepEnded)
	default:
		b.timer.Reset(time.Until(b.ends))
	}
}

func (b *Batch) stepEnded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Advance(time.Now())
	b.follow()
}

// enterShared adds a request to a batch with shared steps. The lock is held.
func (b *Batch) enterShared(s *Seat) {
	s.wake = make(chan struct{}, 1)
	idle := b.ends.IsZero()
	b.Advance(s.entered)
	if b.ends.IsZero() {
		b.beginStep(s.entered)
	}
	if idle {
		b.follow()
	}
}

// leaveShared removes a request from a batch with shared steps. The step in progress takes as long as planned. The lock is held.
func (b *Batch) leaveShared(s *Seat) {
	b.running = slices.DeleteFunc(b.running, func(one *Seat) bool { return one == s })
	b.kvTokens -= s.tokens
	s.tokens = 0
}
