package daemon

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// endWithin is how long a stop waits for workloads after the drain, or after the second signal. Without something that
// is stuck they end at once. The limits of what is written then follow within 2 s, so that all of them are below the 5
// s of a stop.
const endWithin = 2 * time.Second

// An ending says when a stop no longer waits.
type ending struct {
	drain     atomic.Int64  // in ns
	workloads chan struct{} // closed when workloads must have ended
	judged    chan struct{} // closed when comparisons must have ended, a second later
	files     chan struct{} // closed when everything must have been written, another second later
	limits    [3]func()     // close them, once
}

func newEnding() *ending {
	e := &ending{workloads: make(chan struct{}), judged: make(chan struct{}), files: make(chan struct{})}
	for i, limit := range []chan struct{}{e.workloads, e.judged, e.files} {
		e.limits[i] = sync.OnceFunc(func() { close(limit) })
	}
	return e
}

// follow sets the limits after a stop: after ctx nothing new may be sent, after hard requests in flight are aborted.
func (e *ending) follow(ctx, hard context.Context) {
	after := func(d time.Duration) {
		for i, limit := range e.limits {
			time.AfterFunc(d+endWithin+time.Duration(i)*time.Second, limit)
		}
	}
	context.AfterFunc(ctx, func() { after(time.Duration(e.drain.Load())) })
	context.AfterFunc(hard, func() { after(0) })
}

var errSlowStart = fmt.Errorf("stopped while a file or a directory was opened or read that does not answer: %w", context.Canceled)

// startWithin returns what a start or a reload has made. A stop waits for it only briefly: a stuck open or read never ends.
func startWithin(ctx context.Context, start func() (*Generation, error)) (*Generation, error) {
	var made *Generation
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		made, err = start()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		select {
		case <-done:
		case <-time.After(endWithin):
			return nil, errSlowStart
		}
	}
	return made, err
}

// A LeftError says what was left behind by a stop, because it was stuck.
type LeftError struct{ what []string }

func (e *LeftError) Error() string { return "ended without " + strings.Join(e.what, ", ") + ": stuck" }

// endsWithin waits for an end on a goroutine of its own, at most until the limit.
func endsWithin(limit <-chan struct{}, wait func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait()
	}()
	return endsBefore(done, limit)
}
