package live

// A Server is what a target's engine and GPUs report, summed over replicas, ranks and GPUs. A value that is unknown is NaN.
type Server struct {
	EngineDown  bool    // no metrics page of the engine can be scraped, though at least one is known
	GPUsDown    bool    // no source of GPU metrics can be read, though at least one is configured
	Running     float64 // requests that the engine works on
	Waiting     float64 // requests in the engine's queue
	KVCache     float64 // usage of the fullest KV cache, 0 to 1
	PrefixHits  float64 // share of the prompt tokens of the last minute that were found in the prefix cache, 0 to 1
	GPUs        int
	Power       float64 // watts
	Utilization float64 // mean over the GPUs, 0 to 1: SM activity, or the utilization where that is unknown
}

// serverValues is a Server as the page gets it.
type serverValues struct {
	EngineDown  bool  `json:"engine_down"`
	GPUsDown    bool  `json:"gpus_down"`
	Running     value `json:"running"`
	Waiting     value `json:"waiting"`
	KVCache     value `json:"kv_cache"`
	PrefixHits  value `json:"prefix_hits"`
	GPUs        int   `json:"gpus"`
	Power       value `json:"power"`
	Utilization value `json:"utilization"`
}

// readServers reads the servers once a slot, and only while somebody watches. It is called without the lock.
func (b *Board) readServers(slot int) {
	b.mu.Lock()
	watched, read := len(b.viewers) > 0, b.servers != nil && b.serversOf == slot
	b.mu.Unlock()
	if b.serversNow == nil || watched && read {
		return
	}
	var servers map[string]Server
	if watched {
		servers = b.serversNow()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.servers, b.serversOf = servers, slot
}

// server returns the values of a target, and nil while they are not read. The lock is held.
func (b *Board) server(target string) *serverValues {
	s, ok := b.servers[target]
	if !ok {
		return nil
	}
	return &serverValues{
		s.EngineDown, s.GPUsDown, value(s.Running), value(s.Waiting), value(s.KVCache), value(s.PrefixHits), s.GPUs, value(s.Power), value(s.Utilization),
	}
}
