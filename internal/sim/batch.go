package sim

import (
	"container/list"
	"errors"
	"slices"
	"sync"
	"time"
)

// errQueueFull refuses a request when MaxQueue requests wait.
var errQueueFull = errors.New("the queue is full")

// A Batch holds the requests inside the engine: those that wait, in order, those in prefill and those in decode. It has
// no goroutine and no clock. The goroutine of each request reports its events with their planned instants, not with the
// instants at which the goroutine woke up, so that late timers do not add up over a stream or a queue.
type Batch struct {
	options Options
	power   *power
	cache   *cache
	virtual bool             // of NewBatch: there are no timers, and admitted is kept
	observe func(tokens int) // called with the tokens of an engine step: see Decoded

	mu         sync.Mutex
	queue      list.List // of *Seat
	prefilling int
	decoding   int
	freed      time.Time // end of the last prefill; the next one cannot begin earlier
	kvTokens   int       // prompt and output tokens of the running requests
	stepTokens int       // prompt and output tokens since the last whole step
	stepOutput int       // output tokens among them
	steps                // with StepTokens
	admitted   []*Seat   // since Admitted was called
}

type work struct {
	prompt int      // tokens
	keys   []uint64 // of the prompt's whole blocks
	length int      // of the answer, in tokens
	pace   pace
}

// A Seat is a request's place in the batch.
type Seat struct {
	work
	granted chan struct{} // closed when prefill begins
	began   time.Time     // start of prefill; read it after granted is closed
	cached  int           // prompt tokens found in the prefix cache; read it after granted is closed

	entered time.Time
	waiting *list.Element // nil once granted
	decodes bool
	tokens  int // held in the KV cache
	stepSeat
}

// NewBatch returns the requests of an engine without HTTP and without waiting: its caller gives the time. The caller
// reports the events of the requests in order of time. It is the batch that an Engine has: the same cache and noise.
func NewBatch(o Options) (*Batch, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	return &Batch{
		options: o, virtual: true, power: &power{slots: o.Slots, at: time.Unix(0, 0)},
		cache: newCache(o.CacheTokens / o.BlockTokens), observe: func(int) {},
	}, nil
}

// Enter adds a request. The request gets its slot at once, waits, or is refused. The id is for the noise; the keys are
// those of the prompt's whole blocks, and the length is that of the answer, in tokens.
func (b *Batch) Enter(now time.Time, id string, prompt int, keys []uint64, length int) (*Seat, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := work{prompt, keys, length, b.options.pace(id)}
	s := &Seat{work: w, granted: make(chan struct{}), entered: now}
	s.waiting = b.queue.PushBack(s)
	if b.isShared() {
		b.enterShared(s)
	} else {
		b.grant(now)
	}
	if s.waiting != nil && b.queue.Len() > b.options.MaxQueue {
		b.queue.Remove(s.waiting)
		return nil, errQueueFull
	}
	return s, nil
}

// grant lets waiting requests in. With a configured TTFT, prefills do not wait for each other. Otherwise the engine
// computes one prompt at a time, and a request gets its slot when its prefill begins.
func (b *Batch) grant(at time.Time) {
	serial := b.options.TTFT == 0
	for b.queue.Len() > 0 && b.prefilling+b.decoding < b.options.Slots && (!serial || b.prefilling == 0) {
		s := b.queue.Front().Value.(*Seat)
		began := later(at, s.entered)
		if serial {
			began = later(began, b.freed)
		}
		b.prefilling++
		b.admit(s, began)
	}
	b.power.changes(at, b.prefilling, b.decoding)
}

// admit gives a waiting request its slot, and looks its prompt up in the prefix cache. The last token of a prompt is always computed.
func (b *Batch) admit(s *Seat, at time.Time) {
	b.queue.Remove(s.waiting)
	s.waiting = nil
	s.began = at
	if b.cache.room > 0 {
		usable := min(len(s.keys), (s.prompt-1)/b.options.BlockTokens)
		s.cached = b.options.BlockTokens * b.cache.lookup(s.keys[:usable])
	}
	close(s.granted)
	if b.virtual && !b.isShared() {
		b.admitted = append(b.admitted, s)
	}
}

func (b *Batch) isShared() bool { return b.options.StepTokens > 0 }

// Admitted returns the requests whose prefill has begun since the last call, unless the streams share steps.
func (b *Batch) Admitted() []*Seat {
	admitted := b.admitted
	b.admitted = nil
	return admitted
}

// PrefillEnds returns when the prompt of an admitted request is computed, if the streams share no steps.
func (b *Batch) PrefillEnds(s *Seat) time.Time {
	return s.began.Add(scale(b.options.prefill(s.prompt-s.cached), s.pace.prefill))
}

// Cached returns how many tokens of the prompt were found in the prefix cache, once the request is admitted.
func (s *Seat) Cached() int { return s.cached }

// Prefilled moves a request from prefill to decode and stores its prompt.
func (b *Batch) Prefilled(s *Seat, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cache.store(s.keys)
	s.decodes = true
	s.tokens = s.prompt
	b.kvTokens += s.prompt
	b.stepTokens += s.prompt
	b.prefilling--
	b.decoding++
	b.freed = later(b.freed, at)
	b.grant(at)
}

// Decoded counts output tokens of one stream and returns the gap to its next token.
//
// A real engine decodes one token of each stream per step. Here each stream has its own times, so a step ends when as
// many tokens have come as there are streams.
func (b *Batch) Decoded(s *Seat, tokens int) (gap time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.tokens += tokens
	b.kvTokens += tokens
	b.stepTokens += tokens
	b.stepOutput += tokens
	if b.stepOutput >= b.decoding {
		b.observe(b.stepTokens)
		b.stepTokens, b.stepOutput = 0, 0
	}
	return scale(b.options.gap(b.decoding, b.kvTokens), s.pace.decode)
}

// Leave frees the request's slot, its tokens and its place in the queue.
func (b *Batch) Leave(s *Seat, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case s.waiting != nil:
		b.queue.Remove(s.waiting)
		s.waiting = nil
	case b.isShared():
		b.leaveShared(s)
	case s.decodes:
		b.decoding--
		b.kvTokens -= s.tokens
	default:
		b.prefilling--
		b.freed = later(b.freed, at)
	}
	if !b.isShared() {
		b.grant(at)
	}
}

// load is the state of the batch at one instant.
type load struct {
	running, waiting int
	kvUsage          float64 // 0 to 1
}

func (b *Batch) load() load {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := load{running: b.prefilling + b.decoding, waiting: b.queue.Len()}
	if b.options.CacheTokens > 0 {
		l.kvUsage = min(1, float64(b.kvTokens)/float64(b.options.CacheTokens))
	}
	return l
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }
