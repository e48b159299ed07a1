package result

import (
	"fmt"

	"replayd/internal/measure"
)

// A CacheSource says where the number of cached prompt tokens comes from.
type CacheSource string

// Sources, best first.
const (
	CacheUsage  CacheSource = "usage"  // usage in the answers, of this run's requests alone
	CacheEngine CacheSource = "engine" // the server's own counters during the run, other clients' requests included
)

// A Cache says how many of a run's prompt tokens were in the server's prefix cache, and how many of them the load
// itself explains. A cache that was empty at the start has no more hits than the load explains. A nil Cache means that
// this is not known.
type Cache struct {
	Source    CacheSource `json:"source"`
	Prompt    int64       `json:"prompt_tokens"`              // of ok requests, as counted by Source
	Cached    int64       `json:"cached_tokens"`              // part of Prompt
	Explained *int64      `json:"explained_tokens,omitempty"` // upper bound of the hits of a cache that was empty at the start; nil: not known
}

// warmShare is the smallest share of prompt tokens, cached and not explained by the load, that causes a warning. A
// smaller share can come from the chat template or the end of a block.
const warmShare = 0.01

// Beyond returns the share of prompt tokens, 0 to 1, that were cached and that the load does not explain. known is
// false if either number is not known.
func (c *Cache) Beyond() (share float64, known bool) {
	if c == nil || c.Explained == nil || c.Prompt <= 0 {
		return 0, false
	}
	return max(0, float64(c.Cached-*c.Explained)/float64(c.Prompt)), true
}

// Warm returns a sentence if the cache held more than the load explains, else "".
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

// String says how much was cached and how much the load explains.
func (c *Cache) String() string {
	if c == nil {
		return "unknown: neither the answers nor the server's counters say how many prompt tokens it held"
	}
	percent := func(tokens int64) float64 { return 100 * float64(tokens) / float64(max(1, c.Prompt)) }
	by := "the answers"
	if c.Source == CacheEngine {
		by = "the server's counters, all clients together"
	}
	text := fmt.Sprintf("%.1f %% of %d prompt tokens (by %s)", percent(c.Cached), c.Prompt, by)
	if c.Explained == nil {
		return text + "; how much of it the load explains is not known"
	}
	return text + fmt.Sprintf("; the load explains at most %.1f %%", percent(min(*c.Explained, c.Prompt)))
}

// Add returns the cache of two shards. Explained is then not known, because the prompts of one process do not explain
// the cache hits of another.
func (c *Cache) Add(other *Cache) *Cache {
	if c == nil || other == nil || c.Source != other.Source || c.Source == CacheEngine {
		return nil // all shards read the same counters
	}
	return &Cache{Source: c.Source, Prompt: c.Prompt + other.Prompt, Cached: c.Cached + other.Cached}
}

// A cacheSum sums the tokens of ok requests.
type cacheSum struct {
	Cache
	reported bool  // at least one answer reported cached tokens; some servers report them only if above 0
	template int64 // template tokens around the prompts; all prompts share them
}

func (c *cacheSum) add(r *measure.Request) {
	c.reported = c.reported || r.Usage.CacheReported
	c.Prompt += int64(r.Usage.Prompt)
	c.Cached += int64(r.Usage.Cached)
	c.template += int64(max(r.Overhead, r.Usage.Prompt-r.InputTokens, 0))
}

// engineCache returns the growth of the server's counters. ok is false if the server has no such counters or looked up
// no tokens.
func engineCache(series []ServerSeries) (c Cache, ok bool) {
	c.Source = CacheEngine
	hits := false
	for _, b := range series {
		f, read := b.Statistics()
		switch {
		case !read:
		case b.Name == "replayd_engine_prefix_cache_hits_tokens_total", b.Name == "replayd_engine_external_prefix_cache_hits_tokens_total":
			c.Cached, hits = c.Cached+int64(f.Total), true
		case b.Name == "replayd_engine_prefix_cache_queries_tokens_total":
			c.Prompt += int64(f.Total)
		}
	}
	c.Cached = min(c.Cached, c.Prompt)
	return c, hits && c.Prompt > 0
}
