package replay

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A Pacer runs the steps of all runners of a process at their instants, on one goroutine; with NewSleeper on one locked thread. It never
// waits for a runner: if the runner's lock is taken, the goroutine that holds it runs the step on Unlock. Steps do not
// log; a journal does.
type Pacer struct {
	sleeper Sleeper
	made    time.Time
	overdue atomic.Int64 // when a lane may run the next step instead of the pacer, in ns since made; 0: never

	mu     sync.Mutex
	alarms []*alarm  // the alarms that are set, the earliest first
	asleep bool      // the pacer sleeps or is about to
	until  time.Time // end of the sleep; zero: until the pacer is woken
}

// NewPacer returns a pacer that sleeps with s. Run closes s at its end.
func NewPacer(s Sleeper) *Pacer { return &Pacer{sleeper: s, made: time.Now()} }

// Run runs steps until ctx is done. All runners must have ended by then. The goroutine must end with Run, because its thread may be
// locked.
func (p *Pacer) Run(ctx context.Context) {
	woken := make(chan struct{})
	context.AfterFunc(ctx, func() {
		p.sleeper.Wake()
		close(woken)
	})
	for gave := false; ctx.Err() == nil; {
		a, until := p.next(time.Now())
		if a != nil {
			a.ring()
			gave = true
			continue
		}
		if gave {
			// A thread asleep in a system call keeps its place in Go's scheduler, and with it the lanes that it has just
			// woken, until another thread takes them. Yielding first lets them run now.
			runtime.Gosched()
			gave = false
		}
		p.sleeper.Until(until)
	}
	<-woken
	p.Close()
}

// Close closes the sleeper of a pacer that never runs.
func (p *Pacer) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asleep = false // no more wake-ups
	_ = p.sleeper.Close()
}

// next removes and returns the earliest alarm whose instant has come. If there is none, it returns nil and the end of the pacer's sleep;
// a zero end means that only a wake-up ends it.
func (p *Pacer) next(now time.Time) (a *alarm, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.pop(now); a != nil {
		p.asleep = false
		return a, until
	}
	if len(p.alarms) > 0 {
		until = p.alarms[0].at
	}
	p.asleep, p.until = true, until
	return nil, until
}

// pop removes and returns the earliest alarm if its instant is not after now. The lock is held.
func (p *Pacer) pop(now time.Time) *alarm {
	if len(p.alarms) == 0 || p.alarms[0].at.After(now) {
		return nil
	}
	a := p.alarms[0]
	a.move(time.Time{})
	p.expect()
	return a
}

// grace is how long after its instant a step is left to the pacer.
const grace = 20 * time.Microsecond

// expect sets the instant from which on the next step is overdue. The lock is held.
func (p *Pacer) expect() {
	due := int64(0)
	if len(p.alarms) > 0 {
		due = max(1, int64(p.alarms[0].at.Add(grace).Sub(p.made)))
	}
	p.overdue.Store(due)
}

// stepOverdue does a step that is overdue at now, of any runner. A pacer that the kernel has woken waits until Go's scheduler has a
// processor for it, and while all of them are busy with lanes that may be as long as it takes to serve sixty of those: it
// looks for what came from outside only then (schedtick in findRunnable of Go's runtime/proc.go). Each of these lanes asks here.
func (p *Pacer) stepOverdue(now time.Time) {
	due := p.overdue.Load()
	if due == 0 || int64(now.Sub(p.made)) < due || !p.mu.TryLock() {
		return
	}
	a := p.pop(now.Add(-grace))
	p.mu.Unlock()
	if a != nil {
		a.ring()
	}
}
