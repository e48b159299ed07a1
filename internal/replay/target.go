package replay

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"replayd/internal/measure"
	"replayd/internal/openai"
)

const (
	probeEvery   = 5 * time.Second // between two tries to reach a target, and from one return of it to the next
	probeMost    = time.Minute     // between two tries when it fails the question for one token again and again
	probeTimeout = 5 * time.Second // of one try
	probeTries   = 2               // after so many failures, or 5 s, a replay starts without an answer
)

// A Target learns what a replay must know of the server: the model's name and the chat template's own tokens. A
// server that is not there yet, or was restarted, is asked again until it answers; nobody but the first loop's
// epoch waits for that.
type Target struct {
	client *openai.Client
	probe  bool               // the template's overhead is wanted
	named  func(model string) // hears the name that requests carry
	log    *slog.Logger

	cut     atomic.Int64
	lost    atomic.Bool // requests failed to connect since the last answer
	said    atomic.Pointer[Answer]
	again   chan struct{} // holds one: the server answers again after it was lost
	well    chan struct{} // holds one: a request went well while questions failed
	settled chan struct{} // closed when the first loop may start
	once    sync.Once
}

// NewTarget prepares the watch over one server; workloads that share the server share it. With probe, the chat
// template's overhead is measured; named hears the model's name each time it is learnt.
func NewTarget(c *openai.Client, probe bool, named func(model string), log *slog.Logger) *Target {
	return &Target{
		client: c, probe: probe, named: named, log: log,
		again: make(chan struct{}, 1), well: make(chan struct{}, 1), settled: make(chan struct{}),
	}
}

// An Answer is what is known of a target.
type Answer struct {
	Up   bool   // it answered when it was last asked, and requests reach it
	Text string // in words: the model, or why not; "" before the first answer or failure
}

// Answer tells what is known of the target now.
func (t *Target) Answer() Answer {
	if a := t.said.Load(); a != nil {
		return *a
	}
	return Answer{}
}

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

// heard notes from an ended request whether the server was lost or came back: a restarted engine may have another
// chat template.
func (t *Target) heard(req *measure.Request) {
	switch {
	case req.Outcome == measure.ConnectFailed || req.Outcome == measure.TimeoutConnect:
		if t.lost.CompareAndSwap(false, true) && t.Answer().Up {
			t.said.Store(&Answer{Text: req.Error})
			t.log.Warn("the target is lost: requests cannot connect", "target", t.client.Name(), "id", req.ID, "err", req.Error)
		}
	case t.lost.CompareAndSwap(true, false):
		select {
		case t.again <- struct{}{}:
		default:
		}
	case req.Outcome == measure.OK && !t.Answer().Up: // while its own questions failed
		select {
		case t.well <- struct{}{}:
		default:
		}
	}
}

// Run asks until the server has answered, and again whenever it came back. It asks for the models and maybe for one token,
// whatever guards, budgets and pauses say. Its error is one that asking again does not mend: the server lists several models
// and the configuration names none.
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
		if errors.Is(err, openai.ErrSeveralModels) {
			return err
		}
		wait := probeEvery
		if err == nil {
			failures = 0
			t.start()
			select {
			case <-t.again:
			case <-ctx.Done():
				return nil
			}
			wait = time.Until(asked.Add(probeEvery)) // it may come and go with each request
		} else {
			t.said.Store(&Answer{Text: err.Error()})
			if token { // which an engine in trouble has to make: it is asked for less and less often
				wait, pause = pause, min(2*pause, probeMost)
			}
			if failures++; failures == 1 {
				t.log.Warn("the target does not answer as expected, asking again until it does", "target", t.client.Name(), "err", err)
				wait, pause = time.Second, probeEvery
			}
			if failures >= probeTries {
				t.start()
			}
		}
		if !t.rest(ctx, wait, asked.Add(probeEvery)) {
			return nil
		}
	}
}

// rest waits before the next question, and no longer than until soonest when requests are answered meanwhile. False: ctx is done.
func (t *Target) rest(ctx context.Context, wait time.Duration, soonest time.Time) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	well := t.well
	for {
		select {
		case <-timer.C:
			return true
		case <-well:
			well = nil
			timer.Reset(min(wait, time.Until(soonest)))
		case <-ctx.Done():
			return false
		}
	}
}

// start lets the first loop begin.
func (t *Target) start() { t.once.Do(func() { close(t.settled) }) }

// ask learns the model and the template's overhead. token says whether it came to the question that takes one.
func (t *Target) ask(ctx context.Context) (token bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	models, err := t.client.Models(ctx)
	if err != nil {
		return false, err
	}
	model, err := t.client.Choose(models)
	if err != nil {
		return false, err
	}
	t.named(model.ID)
	if err := t.measure(ctx); err != nil {
		return true, err
	}
	if old := t.said.Swap(&Answer{Up: true, Text: model.ID}); old == nil || !old.Up {
		t.log.Info("the target answers", "target", t.client.Name(), "model", model.ID)
	}
	return t.probe, nil
}

// measure learns the template's overhead, where it is wanted.
func (t *Target) measure(ctx context.Context) error {
	if !t.probe {
		return nil
	}
	n, err := t.client.Probe(ctx)
	if err != nil {
		return err
	}
	if old := t.cut.Swap(int64(n)); old != int64(n) {
		t.log.Info("chat template measured", "target", t.client.Name(), "tokens", n, "before", old)
	}
	return nil
}
