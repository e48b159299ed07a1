package live

import (
	"slices"

	"replayd/internal/number"
	"replayd/internal/scrape"
)

// hitReadings is how many readings the prefix hits span: a minute, at one every 5 s.
const hitReadings = 12

// A prefixReading has the counters of the prefix caches of a target's engines, in tokens.
type prefixReading struct{ queries, hits value }

// A reported has the latest readings of the engines of a target, or of its sources of GPUs.
type reported []scrape.Values

// readServers returns what engines and GPUs report, by target, summed over replicas, ranks and GPUs: read once a slot,
// and nil while nobody watches. It is called without the lock.
func (b *Board) readServers(watched bool, slot int) map[string]number.Object {
	switch {
	case !watched || b.options.Engines == nil:
		return nil
	case b.servers != nil && b.serversOf == slot:
		return b.servers
	}
	b.serversOf = slot
	engines, gpus := map[string]reported{}, map[string]reported{}
	servers := map[string]number.Object{}
	by := func(of map[string]reported, all []scrape.Values) {
		for _, v := range all {
			of[v.Target] = append(of[v.Target], v)
			servers[v.Target] = nil
		}
	}
	by(engines, b.options.Engines())
	by(gpus, b.options.GPUs())
	for target := range servers {
		engine := func(name string) []value { return engines[target].each("replayd_engine_" + name) }
		gpu := func(name string) []value { return gpus[target].each("replayd_gpu_" + name) }
		power, busy := gpu("power_watts"), gpu("sm_active_ratio")
		if len(busy) == 0 {
			busy = gpu("utilization_ratio")
		}
		now := prefixReading{sum(engine("prefix_cache_queries_tokens_total")), sum(append(engine("prefix_cache_hits_tokens_total"), engine("external_prefix_cache_hits_tokens_total")...))}
		kept := b.prefixes[target]
		kept = append(kept[max(0, len(kept)-hitReadings):], now)
		b.prefixes[target] = kept
		servers[target] = number.Object{
			"engine_down", engines[target].down(), // no metrics page of the engine can be scraped, though at least one is known
			"gpus_down", gpus[target].down(), // likewise, sources of GPU metrics
			"running", sum(engine("requests_running")), "waiting", sum(engine("requests_waiting")),
			"kv_cache", most(engine("kv_cache_usage_ratio")), // the fullest one, 0 to 1
			"prefix_hits", hitRatio(kept[0], now), // share of the prompt tokens of the last minute
			"gpus", max(len(power), len(busy)), "power", sum(power), "utilization", sum(busy) / value(len(busy)), // watts, 0 to 1
		}
	}
	return servers
}

// down reports whether there is something to read and nothing of it can be read.
func (r reported) down() bool {
	return len(r) > 0 && !slices.ContainsFunc(r, func(v scrape.Values) bool { return v.Up })
}

// each returns the values of a name, one for each replica, rank or GPU. MIG instances are left out: they are parts of
// their GPU.
func (r reported) each(name string) (values []value) {
	for _, v := range r {
		for _, s := range v.Series {
			if s.Name == name && !s.Part {
				values = append(values, value(s.Value))
			}
		}
	}
	return values
}

// hitRatio returns the hit ratio between two readings. It is unknown without queries, if an engine does not count them,
// and after a restart.
func hitRatio(first, last prefixReading) value {
	queries, hits := last.queries-first.queries, last.hits-first.hits
	if !(queries > 0) || hits < 0 || hits > queries {
		return unknown
	}
	return hits / queries
}

// sum returns the sum, unknown without values.
func sum(values []value) value {
	if len(values) == 0 {
		return unknown
	}
	var sum value
	for _, v := range values {
		sum += v
	}
	return sum
}

// most returns the maximum, unknown without values.
func most(values []value) value {
	if len(values) == 0 {
		return unknown
	}
	return slices.Max(values)
}
