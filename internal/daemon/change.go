package daemon

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// changeWithin is how long changes wait for workloads and comparisons. A step takes microseconds, and one that drops a
// million waiting rows some seconds.
const changeWithin = 5 * time.Second

// A stuckError says what a change has waited for in vain. It is a context.DeadlineExceeded.
type stuckError struct {
	what   []string
	within time.Duration
}

func (e *stuckError) Error() string {
	return fmt.Sprintf("%s: no answer within %v. It stands still, or a long step is not over; "+
		"then the change is made after it", strings.Join(e.what, ", "), e.within)
}

func (e *stuckError) Unwrap() error { return context.DeadlineExceeded }

// A change is made to a part of the process by a goroutine of its own, because a part that keeps its lock for ever must
// not take the supervisor with it. Nothing waits for such a goroutine.
type change struct {
	kind, name string
	done       chan struct{} // closed at its end; nil: the part is still in an earlier change, and this one is not made
	news       *bool         // the part is not as before; set before the end
}

// begin makes a change. asked is set until its end.
func begin(kind, name string, asked *atomic.Bool, f func() (news bool)) change {
	c := change{kind: kind, name: name, news: new(bool)}
	if !asked.CompareAndSwap(false, true) {
		return c
	}
	c.done = make(chan struct{})
	go func() {
		*c.news = f()
		asked.Store(false)
		close(c.done)
	}()
	return c
}

// awaitChanges waits for the end of changes, for the given time together, and returns the parts that are not as before.
func awaitChanges(within time.Duration, all ...change) (changed []string, err error) {
	limit, end := context.WithTimeout(context.Background(), within)
	defer end()
	var stuck []string
	for _, c := range all {
		switch {
		case c.done == nil || !endsBefore(c.done, limit.Done()):
			stuck = append(stuck, fmt.Sprintf("%s %q", c.kind, c.name))
		case *c.news:
			changed = append(changed, c.name)
		}
	}
	if len(stuck) > 0 {
		err = &stuckError{stuck, within}
	}
	return changed, err
}

// endsBefore waits for an end, but not after the limit has come.
func endsBefore(end, limit <-chan struct{}) bool {
	select {
	case <-end:
		return true
	case <-limit:
	}
	select {
	case <-end: // both have come
		return true
	default:
		return false
	}
}
