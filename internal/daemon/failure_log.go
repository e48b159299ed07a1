package daemon

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"replayd/internal/measure"
)

// quiet is how long repetitions of a logged failure are only counted.
const quiet = time.Minute

// A failureLog logs failed and dropped requests: the first of a kind at once, then the number in each minute. A kind is a
// workload with an outcome or a drop reason, so there are few kinds.
type failureLog struct {
	log *slog.Logger
	new chan struct{} // capacity 1: firsts is not empty

	mu     sync.Mutex
	kinds  map[kind]*repeated
	firsts []failureLine // first failures that are not logged yet
}

type failureLine struct {
	kind
	text, id, err string
	count         int // 0: the first of its kind
}

type kind struct{ workload, what string }

type repeated struct {
	more    int
	id, err string // of the latest failure
}

func newFailureLog(log *slog.Logger) *failureLog {
	return &failureLog{log: log, new: make(chan struct{}, 1), kinds: map[kind]*repeated{}}
}

// add records n requests that failed or were dropped. It does not block: run writes the log.
func (c *failureLog) add(workload, what string, n int, id, err string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := kind{workload, what}
	if r := c.kinds[k]; r != nil {
		r.more, r.id, r.err = r.more+n, id, err
		return
	}
	c.kinds[k] = &repeated{more: n - 1, id: id, err: err}
	c.firsts = append(c.firsts, failureLine{kind: k, text: "request " + what, id: id, err: err})
	select {
	case c.new <- struct{}{}:
	default:
	}
}

// run logs firsts and counts until ctx ends.
func (c *failureLog) run(ctx context.Context) {
	tick := time.NewTicker(quiet)
	defer tick.Stop()
	for {
		select {
		case <-c.new:
			c.write(c.takeFirsts())
		case <-tick.C:
			c.write(c.sum())
		case <-ctx.Done():
			c.write(c.sum())
			return
		}
	}
}

func (c *failureLog) takeFirsts() []failureLine {
	c.mu.Lock()
	defer c.mu.Unlock()
	firsts := c.firsts
	c.firsts = nil
	return firsts
}

// sum returns the lines to log: first failures of a kind, then counts. A kind that did not occur again is new the next time.
func (c *failureLog) sum() []failureLine {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.firsts
	c.firsts = nil
	var kinds []kind
	for k := range c.kinds {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b kind) int { return cmp.Or(cmp.Compare(a.workload, b.workload), cmp.Compare(a.what, b.what)) })
	for _, k := range kinds {
		r := c.kinds[k]
		if r.more == 0 {
			delete(c.kinds, k)
			continue
		}
		all = append(all, failureLine{kind: k, text: "more requests " + k.what, id: r.id, err: r.err, count: r.more})
		*r = repeated{}
	}
	return all
}

func (c *failureLog) write(all []failureLine) {
	for _, l := range all {
		var args []any
		if l.count > 0 {
			args = append(args, "count", l.count)
		}
		args = append(args, "workload", l.workload)
		if l.id != "" {
			args = append(args, "id", l.id)
		}
		if l.err != "" {
			args = append(args, "err", l.err)
		}
		c.log.Warn(l.text, args...)
	}
}

// A failureObserver observes the requests of one workload.
type failureObserver struct {
	workload string
	add      func(workload, what string, n int, id, err string)
}

// Observe implements replay.Observer.
func (c failureObserver) Observe(r *measure.Request) {
	if r.Outcome.Failed() {
		c.add(c.workload, "failed: "+string(r.Outcome), 1, r.ID, r.Error)
	}
}
