package metrics

import "replayd/internal/measure"

// maxReplicas bounds the values of the label replica of a workload; the replicas after the first 64 are otherReplica.
const (
	maxReplicas  = 64
	otherReplica = "other"
)

// replicas counts the requests of a workload by the replica that answered, and by the router's token in the answer. The zero value has
// none.
type replicas struct {
	at    map[string]int // index in names and ended
	names []string
	ended []int64
	moved int64 // requests that another replica answered than the request before in their session
	named bool  // the target's answers name their replica

	echoes [measure.NumEchoes]int64
	echoed bool // a header of the answers is sent back
}

// add counts a finished request. It allocates for the first request of a replica only.
func (r *replicas) add(name string) {
	if name == "" {
		return
	}
	i, known := r.at[name]
	if !known && len(r.names) >= maxReplicas {
		name = otherReplica
		i, known = r.at[name]
	}
	if !known {
		if r.at == nil {
			r.at = map[string]int{}
		}
		i = len(r.names)
		r.at[name] = i
		r.names, r.ended = append(r.names, valid(name)), append(r.ended, 0)
	}
	r.ended[i]++
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
