package metrics

import (
	"slices"

	"replayd/internal/measure"
)

// A part holds the requests that a workload counts under one model name: those waiting and those in flight, and its
// sessions in progress, so that each request and session ends in the series in which it was expected or began. Several workloads may share a series.
type part struct {
	s                           *series
	waiting, inFlight, sessions int64
}

// now returns the series in which the workload counts. The Meter's lock or the workload's is held.
func (w *Workload) now() *series { return w.parts[len(w.parts)-1].s }

// earlier returns the series of the workload's other model names. A learning workload takes them over from its
// predecessors, so that these counts stay on the page. The lock is held.
func (m *Meter) earlier(l Labels) (parts []*part) {
	for labels, s := range m.series {
		if labels.Workload == l.Workload && labels.Target == l.Target && labels.Model != l.Model && s.users > 0 && !s.untouched() {
			m.use(s)
			parts = append(parts, &part{s: s})
		}
	}
	return parts
}

// rename makes a workload count under another model name. The lock is held.
func (m *Meter) rename(w *Workload, model string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.now()
	if old.labels.Model == model {
		return
	}
	l := old.labels
	l.Model = model
	old.current--
	if at := slices.IndexFunc(w.parts, func(p *part) bool { return p.s.labels == l }); at >= 0 { // the model had this name before
		again := w.parts[at]
		w.parts = append(slices.Delete(w.parts, at, at+1), again)
		again.s.current++
		again.s.configure(w.options)
		again.s.change(func(n *counts) { n.latest = w })
	} else {
		m.enter(w, l)
	}
	w.move(old, w.now())
	if !old.untouched() {
		return
	}
	w.parts = slices.DeleteFunc(w.parts, func(p *part) bool { return p.s == old })
	if old.users--; old.users == 0 {
		m.forget(old)
	}
}

// move moves the workload's state, which does not depend on the model name, to another series.
func (w *Workload) move(from, to *series) {
	var was counts
	from.change(func(n *counts) {
		was = *n
		for i, open := range w.guard {
			if open {
				n.guard[i]--
			}
		}
	})
	to.change(func(n *counts) {
		for i, open := range w.guard {
			if open {
				n.guard[i]++
			}
		}
		n.paused, n.clock, n.loop, n.loopDuration, n.trace = was.paused, was.clock, was.loop, was.loopDuration, was.trace
		n.fault = was.fault && was.latest == w
	})
}

// untouched reports whether a series has never counted anything.
func (s *series) untouched() (so bool) {
	s.change(func(n *counts) {
		so = n.expected == 0 && n.sessions.begun == 0 && n.loopsDone == 0 && n.dropped == [measure.NumDropReasons]int64{}
	})
	return so
}
