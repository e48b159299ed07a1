package replay

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"replayd/internal/openai"
)

const (
	probeEvery   = 5 * time.Second // between two tries to reach a target, and from one return of it to the next
	probeMost    = time.Minute     // between two tries when it fails the question for one token again and again
	probeTimeout = 5 * time.Second // of one question, where the target has no timeout for it
	probeTries   = 2               // after so many failures, or 5 s, a replay starts without an answer
)

// A Target learns what a replay must know of the server: whether it is reached, the model's name and the chat template's own
// tokens. A server that is not there yet, or was restarted, is asked again until it answers. The first loop's epoch waits for
// the first answer, or until it is clear that none comes.
type Target struct {
	// Patient has a replay wait where the server lists several models and none was known before; else that is Run's error.
	// Set it before Run.
	Patient bool

	client *openai.Client
	probe  bool               // the template's overhead is wanted
	named  func(model string) // hears the name that requests carry
	log    *slog.Logger

	cut     atomic.Int64
	again   chan struct{} // holds one: the server answers again after it was lost, or serves another model
	well    chan struct{} // holds one: a request went well while questions failed
	settled chan struct{} // closed when the first loop may start
	once    sync.Once

	heardAt atomic.Int64 // when something was last heard of whether it is reached, in ns since made
	made    time.Time

	mu      sync.Mutex
	answer  Answer
	lost    bool          // it was not reached when something was last heard
	model   string        // that requests name; "" before the first answer
	chosen  chan struct{} // closed when that is known
	unclear error         // why its latest list of models says nothing; nil where it does
}

// NewTarget prepares the watch over one server; workloads that share the server share it. With probe, the chat
// template's overhead is measured; named hears the model's name each time it is learnt.
func NewTarget(c *openai.Client, probe bool, named func(model string), log *slog.Logger) *Target {
	return &Target{
		client: c, probe: probe, named: named, log: log, made: time.Now(),
		again: make(chan struct{}, 1), well: make(chan struct{}, 1), settled: make(chan struct{}), chosen: make(chan struct{}),
	}
}

// An Answer is what is known of a target.
type Answer struct {
	Reached bool   // the last request or question reached it: an HTTP answer came
	Up      bool   // it answered as expected when it was last asked, and requests reach it
	Text    string // in words: the model, or why not; "" before the first answer or failure
}

// Answer tells what is known of the target now.
func (t *Target) Answer() Answer {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.answer
}

// Reached says whether the last request or question got an HTTP answer. It is false before the first.
func (t *Target) Reached() bool { return t.Answer().Reached }

// Settled is closed when a replay may begin: the target has answered, or failed so often that nobody waits for it.
func (t *Target) Settled() <-chan struct{} { return t.settled }

// overhead is the number of template tokens that the last probe found; 0 before.
func (t *Target) overhead() int { return int(t.cut.Load()) }

// await waits until the target has answered, failed twice, or 5 s are over.
func (t *Target) await(ctx context.Context) error {
	timer := time.NewTimer(probeTimeout)
	defer timer.Stop()
	select {
	case <-t.settled:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Run asks until the server has answered, and again whenever it came back; and whenever nothing was heard for 5 s it asks for the
// models, to know whether the server is reached. Guards, budgets and pauses do not hold these questions back. Its error is that
// the server lists several models, none was known before, and Patient is not set.
func (t *Target) Run(ctx context.Context) error {
	defer t.start()
	failures, pause := 0, probeEvery
	for {
		select {
		case <-t.again: // it came back before this question
		default:
		}
		asked := time.Now()
		token, err := t.ask(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			failures = 0
			t.start()
			// It may come and go with each request.
			if !t.rest(ctx, pastime{wake: t.again}) || !t.rest(ctx, pastime{until: asked.Add(probeEvery)}) {
				return nil
			}
			continue
		}
		several := errors.Is(err, openai.ErrSeveralModels)
		if several && !t.Patient {
			return err
		}
		wait := probeEvery
		if token { // which an engine in trouble has to make: it is asked for less and less often
			wait, pause = pause, min(2*pause, probeMost)
		}
		if failures++; failures == 1 {
			if !several { // else that was told
				t.log.Warn("the target does not answer as expected, asking again until it does", "target", t.client.Name(), "err", err)
			}
			wait, pause = time.Second, probeEvery
		}
		if failures >= probeTries || several {
			t.start()
		}
		if !t.rest(ctx, pastime{until: time.Now().Add(wait), soonest: asked.Add(probeEvery)}) {
			return nil
		}
	}
}

// start lets the first loop begin.
func (t *Target) start() { t.once.Do(func() { close(t.settled) }) }

// ask learns the model and the template's overhead. token says whether it came to the question that takes one.
func (t *Target) ask(ctx context.Context) (token bool, err error) {
	if _, err := t.list(ctx); err != nil {
		t.fails(err)
		return false, err
	}
	select {
	case <-t.again: // this question is the one that was to be asked
	default:
	}
	if err := t.measure(ctx); err != nil {
		t.fails(err)
		return true, err
	}
	t.mu.Lock()
	before, model := t.answer, t.model
	t.answer.Up, t.answer.Text = true, model
	t.mu.Unlock()
	if !before.Up {
		t.log.Info("the target answers", "target", t.client.Name(), "model", model)
	}
	return t.probe, nil
}

// fails notes why the target is of no use now.
func (t *Target) fails(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answer.Up, t.answer.Text = false, err.Error()
}

// measure learns the template's overhead, where it is wanted.
func (t *Target) measure(ctx context.Context) error {
	if !t.probe {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	n, err := t.client.Probe(ctx)
	if err != nil {
		return err
	}
	if old := t.cut.Swap(int64(n)); old != int64(n) {
		t.log.Info("chat template measured", "target", t.client.Name(), "tokens", n, "before", old)
	}
	return nil
}
