package metrics

import (
	"slices"

	"replayd/internal/bounded"
	"replayd/internal/measure"
)

// A part holds how many requests and sessions of a workload are open under one model name, so that each ends in the
// series in which it was expected or began. Several workloads may share a series.
type part struct {
	s    *series
	open [numStages]int64
}

// A stage is where a request or a session stands.
type stage int

// Stages. All numbers add up to 0.
const (
	closed     stage = iota // not begun, or ended: minus the number of the open ones, so never above 0
	waiting                 // a request that is due
	inFlight                // a request that a lane has taken
	inProgress              // a session
	numStages
)

// move moves requests or sessions to another stage and makes a change of the counts with it, in the earliest part that
// has one: they end in about the order in which they came. Those that begin, from closed, are in the current part. It
// returns the series of the part.
func (w *Workload) move(n int64, from, to stage, f func(c *counts)) *series {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.parts[len(w.parts)-1]
	if i := slices.IndexFunc(w.parts, func(p *part) bool { return p.open[from] > 0 }); i >= 0 {
		p = w.parts[i]
	}
	p.s.change(func(c *counts) {
		for _, open := range [...]*[numStages]int64{&p.open, &c.open} {
			open[from], open[to] = open[from]-n, open[to]+n
		}
		f(c)
	})
	return p.s
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
	w.moveState(old, w.now())
	if !old.untouched() {
		return
	}
	w.parts = slices.DeleteFunc(w.parts, func(p *part) bool { return p.s == old })
	if old.users--; old.users == 0 {
		m.forget(old)
	}
}

// moveState moves the workload's state, which does not depend on the model name, to another series.
func (w *Workload) moveState(from, to *series) {
	guards := func(n *counts, more int64) {
		for i, open := range w.guard {
			if open {
				n.guard[i] += more
			}
		}
	}
	var was counts
	from.change(func(n *counts) {
		was = *n
		guards(n, -1)
	})
	to.change(func(n *counts) {
		guards(n, 1)
		n.playback = was.playback
		n.fault = was.fault && was.latest == w
	})
}

// untouched reports whether a series has never counted anything.
func (s *series) untouched() (so bool) {
	s.change(func(n *counts) {
		so = n.expected == 0 && n.sessions.begun == 0 && n.loopsDone == 0 && n.loopsLeft == 0 && n.past == nil &&
			n.dropped == [measure.NumDropReasons]int64{}
	})
	return so
}

// goneModel is the model, in no label, under which the counts of models without a place go on in ledgers.
const goneModel = "\x00"

// forgetModels takes the series of models that have lost their place off the page. No other series takes their counts over: it would jump.
// In the ledgers they stay. The lock is held.
func (m *Meter) forgetModels(t *Target) {
	for l, s := range m.series {
		if l.Target != t.name || l.Model == "" || l.Model == goneModel || l.Model == bounded.Other || m.models[t.name].Has(l.Model) || s.busy() {
			continue
		}
		var learners []*Workload
		for _, w := range t.learners {
			if slices.ContainsFunc(w.parts, func(p *part) bool { return p.s == s }) {
				learners = append(learners, w)
			}
		}
		if len(learners) == 0 || len(learners) != s.users { // removed, or of one that drains, or whose model is configured
			continue
		}
		l.Model = goneModel
		gone := m.series[l]
		if gone == nil {
			gone = m.newSeries(l)
			m.series[l] = gone
		}
		was := s.counts()
		if s.began.Before(gone.began) {
			gone.began = s.began
		}
		gone.change(func(n *counts) { n.past = new(was.ledger().Add(n.ledger())) })
		for _, w := range learners {
			w.mu.Lock()
			w.parts = slices.DeleteFunc(w.parts, func(p *part) bool { return p.s == s })
			if !slices.ContainsFunc(w.parts, func(p *part) bool { return p.s == gone }) {
				m.use(gone)
				w.parts = slices.Insert(w.parts, 0, &part{s: gone})
			}
			w.mu.Unlock()
		}
		m.forget(s)
	}
}

// busy reports whether a workload counts in the series now, or a request or session of it has not ended. Meter.mu is held.
func (s *series) busy() (so bool) {
	s.change(func(n *counts) { so = n.open != [numStages]int64{} })
	return so || s.current > 0
}
