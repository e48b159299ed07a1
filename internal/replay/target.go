package replay

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"replayd/internal/openai"
)

const (
	probeEvery  = 5 * time.Second // between two tries to reach a target, and from one return of it to the next
	probeMost   = time.Minute     // between two tries when it fails the question for one token again and again
	probeTries  = 2               // after so many failures, or settleAfter, a replay starts without an answer
	settleAfter = 5 * time.Second
)

// A Target schedules the probes of one server. A server that does not answer yet, or was restarted, is probed again until it answers. The first loop's epoch waits for the first answer, or until it is clear that none comes.
type Target struct {
	probe *openai.Probe

	again   chan struct{} // holds one: the server answers again after it was lost, or serves another model
	well    chan struct{} // holds one: a request went well while questions failed
	settled chan struct{} // closed when the first loop may start
	chosen  chan struct{} // closed when the model that requests name is known
	once    sync.Once

	heardAt atomic.Int64 // when something was last heard of whether it is reached, in ns since made
	made    time.Time
}

// NewTarget prepares the watch over one server; workloads that share the server share it.
func NewTarget(p *openai.Probe) *Target {
	return &Target{
		probe: p, made: time.Now(),
		again: make(chan struct{}, 1), well: make(chan struct{}, 1), settled: make(chan struct{}), chosen: make(chan struct{}),
	}
}

// Answer tells what is known of the target now.
func (t *Target) Answer() openai.Answer { return t.probe.Answer() }

// Reached says whether the last request or question got an HTTP answer. It is false before the first.
func (t *Target) Reached() bool { return t.Answer().Reached }

// Settled is closed when a replay may begin: the target has answered, or has failed so often that it is not waited for.
func (t *Target) Settled() <-chan struct{} { return t.settled }

// overhead is the number of template tokens that the last probe found; 0 before.
func (t *Target) overhead() int { return t.probe.Overhead() }

// nameless is why requests cannot be made yet; nil where they can.
func (t *Target) nameless() error { return t.probe.Nameless() }

// await waits until the target has answered, failed twice, or 5 s are over.
func (t *Target) await(ctx context.Context) error {
	timer := time.NewTimer(settleAfter)
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
// the server lists several models, none was known before, and the probe is not patient.
func (t *Target) Run(ctx context.Context) error {
	defer t.start()
	var keys sync.WaitGroup
	keys.Go(func() { t.probe.Client.WatchCredentials(ctx) })
	defer keys.Wait()
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
		if several && !t.probe.Patient {
			return err
		}
		wait := probeEvery
		if token { // which an engine in trouble has to make: it is asked for less and less often
			wait, pause = pause, min(2*pause, probeMost)
		}
		if failures++; failures == 1 {
			if !several { // else that was told
				t.probe.Log.Warn("the target does not answer as expected, asking again until it does", "target", t.probe.Client.Name(), "err", err)
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
	news, err := t.probe.Ask(ctx)
	t.hear(news)
	if err != nil {
		return false, err
	}
	select {
	case <-t.again: // this question is the one that was to be asked
	default:
	}
	if err := t.probe.Measure(ctx); err != nil {
		return true, err
	}
	return t.probe.Template, nil
}
