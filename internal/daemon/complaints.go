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

// quiet is how long a complaint that was logged is only counted when it comes again.
const quiet = time.Minute

// Complaints log what goes wrong with requests: the first of a kind at once, then how many came in each minute. A kind
// is a workload and an outcome or a drop reason, so there are few.
type complaints struct {
	log *slog.Logger

	mu    sync.Mutex
	kinds map[kind]*repeated
}

type kind struct{ workload, what string }

type repeated struct {
	more    int
	id, err string // of the last one
}

func newComplaints(log *slog.Logger) *complaints {
	return &complaints{log: log, kinds: map[kind]*repeated{}}
}

// add takes a request that failed, or was dropped.
func (c *complaints) add(workload, what, id, err string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := kind{workload, what}
	if r := c.kinds[k]; r != nil {
		r.more, r.id, r.err = r.more+1, id, err
		return
	}
	c.kinds[k] = &repeated{}
	c.log.Warn("request "+what, about(k, id, err)...)
}

// run logs counts until ctx ends.
func (c *complaints) run(ctx context.Context) {
	tick := time.NewTicker(quiet)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.sum()
		case <-ctx.Done():
			c.sum()
			return
		}
	}
}

// sum logs what was only counted; a kind that did not come again is new the next time.
func (c *complaints) sum() {
	c.mu.Lock()
	defer c.mu.Unlock()
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
		c.log.Warn("more requests "+k.what, append([]any{"count", r.more}, about(k, r.id, r.err)...)...)
		*r = repeated{}
	}
}

func about(k kind, id, err string) []any {
	args := []any{"workload", k.workload}
	if id != "" {
		args = append(args, "id", id)
	}
	if err != "" {
		args = append(args, "err", err)
	}
	return args
}

// A complainer is the observer of one workload.
type complainer struct {
	workload string
	complain func(workload, what, id, err string)
}

// Observe implements replay.Observer.
func (c complainer) Observe(r *measure.Request) {
	if r.Outcome != measure.OK && r.Outcome != measure.Cancelled {
		c.complain(c.workload, "failed: "+string(r.Outcome), r.ID, r.Error)
	}
}
