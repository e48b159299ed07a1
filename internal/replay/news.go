package replay

import (
	"maps"
	"slices"

	"replayd/internal/measure"
)

// mostNews bounds the lines that wait while the log is blocked.
const mostNews = 1000

// drops counts dropped rows by reason.
type drops map[measure.DropReason]int

// say queues a log line or callback for tellNews. Both can block, so they must not run under the lock. The lock is held.
func (r *Runner) say(tell func()) {
	if len(r.news) == mostNews {
		r.unsaid++
		return
	}
	r.news = append(r.news, tell)
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

// tellNews writes queued lines in order until the runner is over. Only the end of Run waits for it.
func (r *Runner) tellNews() {
	for {
		r.mu.Lock()
		for len(r.news)+len(r.drops) == 0 && !r.over {
			r.said.Wait()
		}
		news, dropped, unsaid := r.news, r.drops, r.unsaid
		r.news, r.drops, r.unsaid = nil, nil, 0
		r.mu.Unlock()
		for _, tell := range news {
			tell()
		}
		for _, why := range slices.Sorted(maps.Keys(dropped)) {
			r.w.Dropped(why, dropped[why])
		}
		if unsaid > 0 {
			r.w.Log.Warn("log lines were left out: the log is slow", "workload", r.w.Name, "lines", unsaid)
		}
		if len(news)+len(dropped) == 0 {
			return
		}
	}
}
