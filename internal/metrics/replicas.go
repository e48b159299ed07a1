package metrics

// maxReplicas bounds the values of the label replica of a workload; the replicas after the first 64 are otherReplica.
const (
	maxReplicas  = 64
	otherReplica = "other"
)

// replicas counts the requests of a workload by the replica that answered. The zero value has none.
type replicas struct {
	at    map[string]int // index in names and ended
	names []string
	ended []int64
	moved int64 // requests that another replica answered than the request before in their session
	named bool  // the target's answers name their replica
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

// Moved counts a finished request that another replica answered than the request before in its session.
func (w *Workload) Moved() { w.change(func(c *counts) { c.replicas.moved++ }) }
