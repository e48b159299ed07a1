package metrics

import (
	"slices"

	"replayd/internal/measure"
)

// A part of what a workload counts stands under one name of the model: what waits and flies of it, so that it ends where it
// was expected. A series may be a part of several workloads.
type part struct {
	s                 *series
	waiting, inFlight int64
}

// now is the series that the workload counts in. The Meter's lock or the workload's is held.
func (w *Workload) now() *series { return w.parts[len(w.parts)-1].s }

// earlier are the parts that a learner takes over from those before it: what they counted under other names stays on the
// page. The lock is held.
func (m *Meter) earlier(l Labels) (parts []*part) {
	for labels, s := range m.series {
		if labels.Workload == l.Workload && labels.Target == l.Target && labels.Model != l.Model && s.users > 0 && !s.untouched() {
			m.use(s)
			parts = append(parts, &part{s: s})
		}
	}
	return parts
}

// rename has a workload count under another name of the model. The lock is held.
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
	if at := slices.IndexFunc(w.parts, func(p *part) bool { return p.s.labels == l }); at >= 0 { // it had that name before
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

// move takes along what is true of the workload whatever the model's name is.
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

// untouched says whether nothing was ever counted in a series.
func (s *series) untouched() (so bool) {
	s.change(func(n *counts) {
		so = n.expected == 0 && n.loopsDone == 0 && n.dropped == [measure.NumDropReasons]int64{}
	})
	return so
}
