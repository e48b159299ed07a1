package metrics

import (
	"time"

	"replayd/internal/bounded"
	"replayd/internal/measure"
)

// Bounds of the labels replica_name and requested_model of a workload. At most 64 engines of one target are scraped: so many can be replaced
// three times within six hours.
const (
	maxReplicas  = 256
	maxRequested = 64
	forgetName   = 6 * time.Hour
)

// replicas counts the requests of a workload by the replica that answered, and by the router's token in the answer. The zero value has
// none.
type replicas struct {
	names
	moved int64 // requests that another replica answered than the request before in their session

	echoes [measure.NumEchoes]int64
}

// names counts the requests of a workload by a name that others choose. The zero value has none.
type names struct {
	known *bounded.Set[named]
	other named // requests of all names without a place

	shown []named // in a copy for the page
}

type named struct {
	name  string
	ended [measure.NumOutcomes]int64
	began time.Time // of the count
}

// all returns the requests that ended.
func (n *named) all() (sum int64) {
	for _, of := range n.ended {
		sum += of
	}
	return sum
}

// add counts a finished request, and returns false if its name has none of so many places. It allocates for the first request of a name only.
func (r *names) add(name string, most, outcome int, now time.Time) (counted bool) {
	if name == "" {
		return true
	}
	one := &r.other
	if name = valid(name); name != bounded.Other {
		if r.known == nil {
			r.known = bounded.NewSet[named](most, forgetName)
		}
		if known := r.known.See(name, now); known != nil {
			one, counted = known, true
		}
	}
	if one.began.IsZero() {
		one.name, one.began = bounded.Other, now
		if counted {
			one.name = name
		}
	}
	one.ended[outcome]++
	return counted || name == bounded.Other
}

// show sets shown.
func (r *names) show() {
	r.shown = nil
	if r.known != nil {
		for _, one := range r.known.All() {
			r.shown = append(r.shown, *one)
		}
	}
	if r.other.all() > 0 {
		r.shown = append(r.shown, r.other)
	}
}

// Routed counts what the answer of a finished request of a session says of its replica: moved if another one answered the request before,
// and what became of the header that later requests send back.
func (w *Workload) Routed(moved bool, e measure.Echo) {
	if !moved && e == measure.EchoNone {
		return
	}
	w.change(func(c *counts) {
		if moved {
			c.replicas.moved++
		}
		c.replicas.echoes[e]++
	})
}
