package scrape

import (
	"math"
	"strings"
)

// A Quantity is one metric of the vocabulary that is common to all engines and routers.
type Quantity struct {
	Name    string  // the series' after the role's prefix; counters without _total
	*Family         // on replayd's page
	most    float64 // value; the least is 0
}

// quantities are those of engines, in the order of the page. Except for the first three gauges, all quantities pass on
// the engine's values, counter resets included.
var quantities = []*Quantity{
	newQuantity("requests_running", Gauge, "Requests that the engine works on."),
	newQuantity("requests_waiting", Gauge, "Requests in the engine's own queue."),
	newQuantity("kv_cache_usage_ratio", Gauge, "Share of the KV cache in use, 0 to 1."),
	newQuantity("prefix_cache_hit_ratio", Gauge, "Share of prefix cache lookups that hit, over a time of the engine's choice."),
	newQuantity("prefix_cache_queries_tokens", Counter, "Prompt tokens looked for in the prefix cache."),
	newQuantity("prefix_cache_hits_tokens", Counter, "Prompt tokens found in the prefix cache."),
	newQuantity("external_prefix_cache_queries_tokens", Counter,
		"Prompt tokens that the prefix cache lacked, looked for in a cache outside the engine."),
	newQuantity("external_prefix_cache_hits_tokens", Counter, "Prompt tokens found in a cache outside the engine."),
	newQuantity("speculative_acceptance_ratio", Gauge,
		"Share of drafted tokens that were accepted, 0 to 1, over a time of the engine's choice."),
	newQuantity("speculative_drafted_tokens", Counter, "Tokens that speculative decoding drafted."),
	newQuantity("speculative_accepted_tokens", Counter, "Drafted tokens that the model accepted."),
	newQuantity("preemptions", Counter, "Requests that lost their place in the batch."),
	newQuantity("prompt_tokens", Counter, "Prompt tokens; whether cached ones are in it is the engine's choice."),
	newQuantity("generation_tokens", Counter, "Output tokens."),
	newQuantity("requests_finished", Counter, "Requests that ended, as the engine counts them."),
	newQuantity("ttft_seconds", Histogram, "From a request's arrival to its first token, as the engine sees it."),
	newQuantity("tpot_seconds", Histogram,
		"Mean time per output token after the first, one value a request, as the engine sees it."),
	newQuantity("itl_seconds", Histogram, "From one token to the next, as the engine sees it."),
	newQuantity("e2e_seconds", Histogram, "From a request's arrival to its last token, as the engine sees it."),
	newQuantity("queue_seconds", Histogram, "From a request's arrival to its prefill."),
	newQuantity("prefill_seconds", Histogram, "From the start of the prefill to the first token."),
	newQuantity("decode_seconds", Histogram, "From the first token to the last."),
}

var (
	waiting, kvCacheUsage      = quantity("requests_waiting"), quantity("kv_cache_usage_ratio")
	generationTokens, finished = quantity("generation_tokens"), quantity("requests_finished")
)

func newQuantity(name string, kind Kind, help string) *Quantity {
	return quantityIn(namespace, name, kind, help)
}

func quantityIn(space, name string, kind Kind, help string) *Quantity {
	series := space + name
	if kind == Counter {
		series += "_total"
	}
	most := math.MaxFloat64
	if strings.HasSuffix(name, "_ratio") {
		most = 1
	}
	return &Quantity{name, NewFamily(series, help, kind, []string{"target", "address", "rank"}), most}
}

// canBe reports whether the quantity can have a value.
func (q *Quantity) canBe(value float64) bool { return value >= 0 && value <= q.most }

const namespace = "replayd_engine_"
