package daemon

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"replayd/internal/measure"
)

// quiet is how long repetitions of a logged failure are only counted.
const quiet = time.Minute

// A failureLog logs failed and dropped requests: the first of a kind at once, then the number in each minute. A kind is
// a workload with an outcome or a drop reason, so there are few kinds.
type failureLog struct {
	log *slog.Logger
	new chan struct{} // capacity 1: firsts is not empty

	mu     sync.Mutex
	kinds  map[failureKind]*repeated
	firsts []failureLine // first failures that are not logged yet
}

type failureLine struct {
	text string
	args []any
}

type failureKind struct{ workload, what string }

type repeated struct {
	more    int
	id, err string // of the latest failure
}

func (k failureKind) line(text, id, err string, args ...any) failureLine {
	args = append(args, "workload", k.workload)
	if id != "" {
		args = append(args, "id", id)
	}
	if err != "" {
		args = append(args, "err", err)
	}
	return failureLine{text + k.what, args}
}

func newFailureLog(log *slog.Logger) *failureLog {
	return &failureLog{log: log, new: make(chan struct{}, 1), kinds: map[failureKind]*repeated{}}
}

// add records n requests that failed or were dropped. It does not block: run writes the log.
func (c *failureLog) add(workload, what string, n int, id, err string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := failureKind{workload, what}
	if r := c.kinds[k]; r != nil {
		r.more, r.id, r.err = r.more+n, id, err
		return
	}
	c.kinds[k] = &repeated{more: n - 1, id: id, err: err}
	c.firsts = append(c.firsts, k.line("request ", id, err))
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
			c.write(false)
		case <-tick.C:
			c.write(true)
		case <-ctx.Done():
			c.write(true)
			return
		}
	}
}

func (c *failureLog) write(counts bool) {
	for _, l := range c.take(counts) {
		c.log.Warn(l.text, l.args...)
	}
}

// take returns the lines to log: firsts of a kind, then counts. A kind that did not occur again is new the next time.
func (c *failureLog) take(counts bool) []failureLine {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.firsts
	c.firsts = nil
	if !counts {
		return all
	}
	kinds := slices.SortedFunc(maps.Keys(c.kinds), func(a, b failureKind) int {
		return cmp.Or(cmp.Compare(a.workload, b.workload), cmp.Compare(a.what, b.what))
	})
	for _, k := range kinds {
		r := c.kinds[k]
		if r.more == 0 {
			delete(c.kinds, k)
			continue
		}
		all = append(all, k.line("more requests ", r.id, r.err, "count", r.more))
		*r = repeated{}
	}
	return all
}

type failureObserver struct {
	workload string
	add      func(workload, what string, n int, id, err string)
}

func (c failureObserver) Observe(r *measure.Request) {
	if r.Outcome.Failed() {
		c.add(c.workload, "failed: "+string(r.Outcome), 1, r.ID, string(r.Error))
	}
}
