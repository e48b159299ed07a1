package replay

// mostNews bounds the lines that wait while the log is blocked.
const mostNews = 1000

// say queues a log line or callback for tellNews. Both can block, so they must not run under the lock. The lock is held.
func (r *Runner) say(tell func()) {
	if len(r.news) == mostNews {
		r.unsaid++
		return
	}
	r.news = append(r.news, tell)
	r.said.Signal()
}

// tellNews writes queued lines in order until the runner is over. Only the end of Run waits for it.
func (r *Runner) tellNews() {
	for {
		r.mu.Lock()
		for len(r.news) == 0 && !r.over {
			r.said.Wait()
		}
		news, unsaid := r.news, r.unsaid
		r.news, r.unsaid = nil, 0
		r.mu.Unlock()
		for _, tell := range news {
			tell()
		}
		if unsaid > 0 {
			r.w.Log.Warn("log lines were left out: the log is slow", "workload", r.w.Name, "lines", unsaid)
		}
		if len(news) == 0 {
			return
		}
	}
}
