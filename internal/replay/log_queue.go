package replay

import (
	"maps"
	"slices"

	"replayd/internal/measure"
)

// mostLogLines bounds the lines that wait while the log is blocked.
const mostLogLines = 1000

// drops counts dropped rows by reason.
type drops map[measure.DropReason]int

// say queues a log line or callback for writeLog. Both can block, so they must not run under the lock. The lock is held.
func (r *Runner) say(tell func()) {
	if len(r.logQueue) == mostLogLines {
		r.logDropped++
		return
	}
	r.logQueue = append(r.logQueue, tell)
	r.said.Signal()
}

// sayDropped queues a row that is not sent, for Workload.Dropped. Rows of the warm-up are not told. The lock is held.
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

// writeLog writes queued lines in order until the runner is over. Only the end of Run waits for it.
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
