package replay

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"replayd/internal/openai"
	"replayd/internal/secret"
)

const (
	probeTries  = 2 // after so many failures, or after settleAfter, a replay starts without an answer
	settleAfter = 5 * time.Second
)

// TargetOptions say which server a Target probes, and how.
type TargetOptions struct {
	Client   *openai.Client
	Template bool               // measure the tokens that the chat template adds
	Patient  bool               // the load waits if the server lists several models and none was known before
	Named    func(model string) // called with the model's name each time it changes
	Log      *slog.Logger
}

// A Target finds out whether a server is reached, its model and the tokens that its chat template adds, by probes
// and from the outcomes of the load. A server that does not answer yet, or was restarted, is probed again until it
// answers. The first loop's epoch waits for the first answer, or until it is clear that none comes.
type Target struct {
	TargetOptions
	made   time.Time
	newsAt atomic.Int64 // latest news of whether the target is reached, in ns since made
	noType atomic.Bool  // it was logged that answers have no type
	secure atomic.Bool  // it was logged that a Secure cookie is withheld
	badTLS atomic.Bool  // it was logged that the files of TLS cannot be used
	lost   atomic.Bool  // the latest look-up of pods has failed
	tokens atomic.Int64 // of the template, as measured last; 0: not measured yet

	sooner     chan struct{} // capacity 1: the next probe may be due sooner
	settled    chan struct{} // closed when the first loop may start
	modelKnown chan struct{} // closed when the name of the model is known
	once       sync.Once
	inexact    string // why the latest list of models leaves no exact lengths to ask for; of Run's goroutine

	mu      sync.Mutex
	health  health
	text    secret.Text // see Health
	model   secret.Text // that requests name; "" before the first answer
	unclear error       // why the latest list of models determines no model; nil: it does
}

// NewTarget returns a Target. Workloads with the same server share it.
func NewTarget(o TargetOptions) *Target {
	o.Log = o.Log.With("target", o.Client.Target().Name)
	return &Target{
		TargetOptions: o, made: time.Now(), health: health{again: true},
		sooner: make(chan struct{}, 1), settled: make(chan struct{}), modelKnown: make(chan struct{}),
	}
}

// Health is the health of a target.
type Health struct {
	Reached bool        // the latest request or probe got an HTTP answer; false before the first
	Up      bool        // the latest probe was answered as expected, and requests reach the target
	Text    secret.Text // in words: the model, or why not; "" before the first answer or failure
}

// Health returns the health of the target.
func (t *Target) Health() Health {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Health{Reached: t.health.state >= failing, Up: t.health.state == up, Text: t.text}
}

// Model returns the name of the model that the server served last; "" before it is known.
func (t *Target) Model() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.model)
}

// Settled is closed when a replay may begin: the target has answered, or has failed probeTries times.
func (t *Target) Settled() <-chan struct{} { return t.settled }

// nameless returns why requests cannot be built yet: the server lists several models, and none was known before.
// nil: they can.
func (t *Target) nameless() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Patient && t.model == "" && errors.Is(t.unclear, openai.ErrSeveralModels) {
		return t.unclear
	}
	return nil
}

// await waits until the target has answered or failed probeTries times, but at most settleAfter.
func (t *Target) await(ctx context.Context) error {
	select {
	case <-t.settled:
	case <-time.After(settleAfter):
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Run probes the server until it has answered, and again each time that it comes back. If there was no traffic for 5 s, Run
// lists the models, to know whether the server is reachable. Guards, budgets and pauses do not hold probes back. Run
// returns an error if the server lists several models, none was known before, and the target is not patient.
func (t *Target) Run(ctx context.Context) error {
	defer t.start()
	var beside sync.WaitGroup
	beside.Go(func() { t.Client.WatchCredentials(ctx) })
	defer beside.Wait()
	if t.Client.Named() {
		t.Lookup(ctx)
		beside.Go(func() { repeat(ctx, lookupEvery, func() { t.Lookup(ctx) }) })
	}
	for ctx.Err() == nil {
		t.mu.Lock()
		at, probe := t.health.next(t.made.Add(time.Duration(t.newsAt.Load())), t.unclear != nil)
		t.mu.Unlock()
		switch wait := time.Until(at); {
		case wait > 0:
			select {
			case <-time.After(wait):
			case <-t.sooner:
			case <-ctx.Done():
			}
		case !probe:
			_ = t.list(ctx) // it logs its errors
		default:
			if err := t.probe(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookupEvery is the time from one look-up of a target's pods to the next.
const lookupEvery = 10 * time.Second

// Lookup looks up the pods once, where they have a name, and logs a change and the first of failures in a row.
func (t *Target) Lookup(ctx context.Context) {
	changed, err := t.Client.Lookup(ctx)
	if ctx.Err() != nil {
		return
	}
	if changed {
		t.Log.Info("the target has these pods", "pods", strings.Join(t.Client.Pods(), " "))
	}
	if failed := err != nil; failed != t.lost.Swap(failed) && failed {
		t.Log.Warn("the target's pods cannot all be looked up: those found before still get requests", "err", err)
	}
}

// start allows the first loop to begin.
func (t *Target) start() { t.once.Do(func() { close(t.settled) }) }
