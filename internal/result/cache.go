package result

import (
	"fmt"
	"sync"

	"replayd/internal/measure"
)

// A CacheSource is who said how many prompt tokens came from the server's prefix cache.
type CacheSource string

// Sources, best first.
const (
	CacheUsage  CacheSource = "usage"  // the answers, of this run's requests alone
	CacheEngine CacheSource = "engine" // the server's own counters while the run went on, other clients' requests included
)

// A Cache is how much of a run's prompts the server had in its prefix cache, and how much of that the load itself explains. A server
// that was cold has no more than that. Nil stands for a run of which it is not known.
type Cache struct {
	Source    CacheSource `json:"source"`
	Prompt    int64       `json:"prompt_tokens"`              // of ok requests, as Source has it
	Cached    int64       `json:"cached_tokens"`              // of Prompt
	Explained *int64      `json:"explained_tokens,omitempty"` // upper bound of the hits of a cache that was empty at the start; nil: not known
}

// warmShare is the least share of prompt tokens, cached and not explained by the load, that is worth a warning. A smaller share can
// come from the chat template or the end of a block.
const warmShare = 0.01

// Beyond is the part of the prompt tokens that were in the cache and that the load does not explain, 0 to 1. It is not known where
// either is not.
func (c *Cache) Beyond() (share float64, known bool) {
	if c == nil || c.Explained == nil || c.Prompt <= 0 {
		return 0, false
	}
	return max(0, float64(c.Cached-*c.Explained)/float64(c.Prompt)), true
}

// Warm says in a sentence that the cache held more than the load explains; "" where that is not so, or not known.
func (c *Cache) Warm() string {
	beyond, _ := c.Beyond()
	if beyond < warmShare {
		return ""
	}
	text := fmt.Sprintf("%.1f %% of the prompt tokens came from the server's prefix cache though this run had not sent them before: TTFT and throughput are those of a warm cache", 100*beyond)
	if c.Source == CacheEngine {
		text += ", unless other clients used the server meanwhile"
	}
	return text
}

// String says how much was cached, and what the load explains.
func (c *Cache) String() string {
	if c == nil {
		return "unknown: neither the answers nor the server's counters say how many prompt tokens it held"
	}
	text := fmt.Sprintf("%.1f %% of %d prompt tokens (by the answers)", 100*float64(c.Cached)/float64(max(1, c.Prompt)), c.Prompt)
	if c.Source == CacheEngine {
		text = fmt.Sprintf("%.1f %% of %d prompt tokens (by the server's counters, all clients together)", 100*float64(c.Cached)/float64(max(1, c.Prompt)), c.Prompt)
	}
	if c.Explained == nil {
		return text + "; how much of it the load explains is not known"
	}
	return text + fmt.Sprintf("; the load explains at most %.1f %%", 100*float64(min(*c.Explained, c.Prompt))/float64(max(1, c.Prompt)))
}

// Add is the cache of two shards. The prompts of one process do not explain the cache hits of another.
func (c *Cache) Add(other *Cache) *Cache {
	if c == nil || other == nil || c.Source != other.Source || c.Source == CacheEngine {
		return nil // each shard read the same counters
	}
	return &Cache{Source: c.Source, Prompt: c.Prompt + other.Prompt, Cached: c.Cached + other.Cached}
}

// A CacheMeter observes the finished requests of a run and computes its Cache.
type CacheMeter struct {
	mu       sync.Mutex
	told     bool  // of one request at least it was said: some servers say it only where it is more than 0
	sum      Cache // of ok requests
	template int64 // tokens around their prompts, the same in all
}

// Observe takes a finished request.
func (m *CacheMeter) Observe(r *measure.Request) {
	if r.Outcome != measure.OK {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = m.told || r.Usage.CacheTold
	m.sum.Prompt += int64(r.Usage.Prompt)
	m.sum.Cached += int64(r.Usage.Cached)
	m.template += int64(max(r.Overhead, r.Usage.Prompt-r.InputTokens, 0))
}

// Cache is what was seen. The tokens are those that the prompts share with each other; without them shared is false. Beside are
// the server's own counters, for where its answers say nothing.
func (m *CacheMeter) Cache(tokens int64, shared bool, beside []ServerSeries) *Cache {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.sum
	c.Source = CacheUsage
	if !m.told {
		var ok bool
		if c, ok = engineCache(beside); !ok {
			return nil
		}
	}
	if shared {
		tokens += m.template
		c.Explained = &tokens
	}
	return &c
}

// engineCache is what the server's counters grew by. It is not ok where it has none, or looked up nothing.
func engineCache(beside []ServerSeries) (c Cache, ok bool) {
	c.Source = CacheEngine
	hits := false
	for _, b := range beside {
		f, read := b.Statistics()
		switch {
		case !read:
		case b.Name == "replayd_engine_prefix_cache_hits_tokens_total":
			c.Cached, hits = c.Cached+int64(f.Total), true
		case b.Name == "replayd_engine_prefix_cache_queries_tokens_total":
			c.Prompt += int64(f.Total)
		}
	}
	c.Cached = min(c.Cached, c.Prompt)
	return c, hits && c.Prompt > 0
}
