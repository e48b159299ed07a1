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

// quiet is how long a failure that was logged is only counted when it comes again.
const quiet = time.Minute

// A failureLog logs what goes wrong with requests: the first of a kind at once, then how many came in each minute. A kind
// is a workload and an outcome or a drop reason, so there are few.
type failureLog struct {
	log *slog.Logger
	new chan struct{} // holds one: there are firsts

	mu     sync.Mutex
	kinds  map[kind]*repeated
	firsts []failureLine // not logged yet
}

type failureLine struct {
	kind
	text, id, err string
	count         int // 0: it is a first
}

type kind struct{ workload, what string }

type repeated struct {
	more    int
	id, err string // of the last one
}

func newFailureLog(log *slog.Logger) *failureLog {
	return &failureLog{log: log, new: make(chan struct{}, 1), kinds: map[kind]*repeated{}}
}

// add takes n requests that failed, or were dropped. It does not block: the log is written by run.
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

// sum gives the lines to log: first failures of a kind, then counts. A kind that did not come again is new the next time.
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

// A failureObserver is the observer of one workload.
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
