package scrape

// A Kind is the type of a metric.
type Kind string

// The kinds.
const (
	Gauge     Kind = "gauge"
	Counter   Kind = "counter"
	Histogram Kind = "histogram"
)

// A Quantity is one metric of the vocabulary that is common to all engines.
type Quantity struct {
	Name string // after replayd_engine_; counters without _total
	Kind Kind
	Help string
}

// quantities is the vocabulary, in the order of the page. Except for the first three gauges, all quantities pass on the
// engine's values, counter resets included.
var quantities = []*Quantity{
	{"requests_running", Gauge, "Requests that the engine works on."},
	{"requests_waiting", Gauge, "Requests in the engine's own queue."},
	{"kv_cache_usage_ratio", Gauge, "Share of the KV cache in use, 0 to 1."},
	{"prefix_cache_hit_ratio", Gauge, "Share of prefix cache lookups that hit, over a time of the engine's choice."},
	{"prefix_cache_queries_tokens", Counter, "Prompt tokens looked for in the prefix cache."},
	{"prefix_cache_hits_tokens", Counter, "Prompt tokens found in the prefix cache."},
	{"preemptions", Counter, "Requests that lost their place in the batch."},
	{"prompt_tokens", Counter, "Prompt tokens; whether cached ones are in it is the engine's choice."},
	{"generation_tokens", Counter, "Output tokens."},
	{"requests_finished", Counter, "Requests that ended, as the engine counts them."},
	{"ttft_seconds", Histogram, "From a request's arrival to its first token, as the engine sees it."},
	{"tpot_seconds", Histogram, "Mean time per output token after the first, one value a request, as the engine sees it."},
	{"itl_seconds", Histogram, "From one token to the next, as the engine sees it."},
	{"e2e_seconds", Histogram, "From a request's arrival to its last token, as the engine sees it."},
	{"queue_seconds", Histogram, "From a request's arrival to its prefill."},
	{"prefill_seconds", Histogram, "From the start of the prefill to the first token."},
	{"decode_seconds", Histogram, "From the first token to the last."},
}

func quantity(name string) *Quantity {
	for _, q := range quantities {
		if q.Name == name {
			return q
		}
	}
	return nil
}

// Series returns the name of the quantity's series on replayd's page.
func (q *Quantity) Series() string {
	if q.Kind == Counter {
		return namespace + q.Name + "_total"
	}
	return namespace + q.Name
}

const namespace = "replayd_engine_"
