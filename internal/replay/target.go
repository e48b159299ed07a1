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
	probeEvery  = 5 * time.Second // between two probes of a target
	probeMost   = time.Minute     // longest pause between two probes that measure a template, after failures
	probeTries  = 2               // after so many failures, or after settleAfter, a replay starts without an answer
	settleAfter = 5 * time.Second
)

// A Target schedules the probes of one server. A server that does not answer yet, or was restarted, is probed again until
// it answers. The first loop's epoch waits for the first answer, or until it is clear that none comes.
type Target struct {
	probe *openai.Probe

	again   chan struct{} // capacity 1: the server answers again after it was lost, or serves another model
	well    chan struct{} // capacity 1: a request succeeded while probes failed
	settled chan struct{} // closed when the first loop may start
	chosen  chan struct{} // closed when the name of the model is known
	once    sync.Once

	heardAt atomic.Int64 // last evidence of whether the target is reachable, in ns since made
	made    time.Time
}

// NewTarget returns a Target. Workloads with the same server share it.
func NewTarget(p *openai.Probe) *Target {
	return &Target{
		probe: p, made: time.Now(),
		again: make(chan struct{}, 1), well: make(chan struct{}, 1), settled: make(chan struct{}), chosen: make(chan struct{}),
	}
}

// Answer returns the result of the latest probe: whether the server was reached, and its model.
func (t *Target) Answer() openai.Answer { return t.probe.Answer() }

// Model returns the name of the model that the server served last; "" before it is known.
func (t *Target) Model() string { return t.probe.Model() }

// Reached reports whether the last request or probe got an HTTP answer. It is false before the first.
func (t *Target) Reached() bool { return t.Answer().Reached }

// Settled is closed when a replay may begin: the target has answered, or has failed probeTries times.
func (t *Target) Settled() <-chan struct{} { return t.settled }

// overhead returns the template tokens that the last probe measured; 0 before.
func (t *Target) overhead() int { return t.probe.Overhead() }

// nameless returns the reason why the model's name is unknown; nil if it is known.
func (t *Target) nameless() error { return t.probe.Nameless() }

// await waits until the target has answered or failed probeTries times, but at most settleAfter.
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

// Run probes the server until it has answered, and again each time that it comes back. If there was no traffic for 5 s, Run
// lists the models, to know whether the server is reachable. Guards, budgets and pauses do not hold probes back. Run
// returns an error if the server lists several models, none was known before, and the probe is not patient.
func (t *Target) Run(ctx context.Context) error {
	defer t.start()
	var keys sync.WaitGroup
	keys.Go(func() { t.probe.Client.WatchCredentials(ctx) })
	defer keys.Wait()
	failures, pause := 0, probeEvery
	for {
		select {
		case <-t.again: // it came back before this probe
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
			// The wake-up and the pause are separate, since the server may come and go with each request.
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
		if token { // the engine has to generate a token: back off
			wait, pause = pause, min(2*pause, probeMost)
		}
		if failures++; failures == 1 {
			if !several { // the probe has logged that
				t.probe.Log.Warn("the target does not answer as expected, retrying", "target", t.probe.Client.Name(), "err", err)
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

// start allows the first loop to begin.
func (t *Target) start() { t.once.Do(func() { close(t.settled) }) }

// ask learns the model and the template's overhead. token reports whether the server was asked to generate a token.
func (t *Target) ask(ctx context.Context) (token bool, err error) {
	news, err := t.probe.Ask(ctx)
	t.hear(news)
	if err != nil {
		return false, err
	}
	select {
	case <-t.again: // this probe serves the request on again too
	default:
	}
	if err := t.probe.Measure(ctx); err != nil {
		return true, err
	}
	return t.probe.Template, nil
}
