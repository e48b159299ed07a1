package replay

import (
	"maps"
	"slices"

	"replayd/internal/measure"
)

// mostLogLines bounds the queued lines while the log is blocked.
const mostLogLines = 1000

// drops counts dropped rows by reason.
type drops map[measure.DropReason]int

// say queues a log line or callback for writeLog. Both can block, so they must not run under the lock. The caller holds the
// lock.
func (r *Runner) say(tell func()) {
	if len(r.logQueue) == mostLogLines {
		r.logDropped++
		return
	}
	r.logQueue = append(r.logQueue, tell)
	r.said.Signal()
}

// sayDropped queues the drop of a row for Workload.Dropped. Drops of the warm-up are not reported. The caller holds the
// lock.
func (r *Runner) sayDropped(why measure.DropReason) {
	if r.w.Dropped == nil || r.phase == measure.Warmup {
		return
	}
	if r.drops == nil {
		r.drops = drops{}
	}
	r.drops[why]++
	r.said.Signal()
}

// writeLog writes queued lines in order until the runner has ended. Only the end of Run waits for it.
func (r *Runner) writeLog() {
	for {
		r.mu.Lock()
		for len(r.logQueue)+len(r.drops) == 0 && !r.over {
			r.said.Wait()
		}
		lines, dropped, lost := r.logQueue, r.drops, r.logDropped
		r.logQueue, r.drops, r.logDropped = nil, nil, 0
		r.mu.Unlock()
		for _, tell := range lines {
			tell()
		}
		for _, why := range slices.Sorted(maps.Keys(dropped)) {
			r.w.Dropped(why, dropped[why])
		}
		if lost > 0 {
			r.w.Log.Warn("log lines were dropped: the log is slow", "workload", r.w.Name, "lines", lost)
		}
		if len(lines)+len(dropped) == 0 {
			return
		}
	}
}
