package replay

// mostNews bounds what waits for a log that is blocked.
const mostNews = 1000

// say has something told soon: logs and callbacks may wait, and whoever holds the lock must not. The lock is held.
func (r *Runner) say(tell func()) {
	if len(r.news) == mostNews {
		r.unsaid++
		return
	}
	r.news = append(r.news, tell)
	r.said.Signal()
}

// tellNews tells in order what was said, until nothing is left to do. Only the end of Run waits for it.
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
