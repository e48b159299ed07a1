package scrape

import "slices"

// A Quantity is one metric of the vocabulary that is common to all engines.
type Quantity struct {
	Name    string // the series' after replayd_engine_; counters without _total
	*Family        // on replayd's page
}

// quantities is the vocabulary, in the order of the page. Except for the first three gauges, all quantities pass on the
// engine's values, counter resets included.
var quantities = []*Quantity{
	newQuantity("requests_running", Gauge, "Requests that the engine works on."),
	newQuantity("requests_waiting", Gauge, "Requests in the engine's own queue."),
	newQuantity("kv_cache_usage_ratio", Gauge, "Share of the KV cache in use, 0 to 1."),
	newQuantity("prefix_cache_hit_ratio", Gauge, "Share of prefix cache lookups that hit, over a time of the engine's choice."),
	newQuantity("prefix_cache_queries_tokens", Counter, "Prompt tokens looked for in the prefix cache."),
	newQuantity("prefix_cache_hits_tokens", Counter, "Prompt tokens found in the prefix cache."),
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

var generationTokens, finished = quantity("generation_tokens"), quantity("requests_finished")

func quantity(name string) *Quantity {
	if i := slices.IndexFunc(quantities, func(q *Quantity) bool { return q.Name == name }); i >= 0 {
		return quantities[i]
	}
	return nil
}

func newQuantity(name string, kind Kind, help string) *Quantity {
	series := namespace + name
	if kind == Counter {
		series += "_total"
	}
	return &Quantity{name, NewFamily(series, help, kind, []string{"target", "replica", "rank"})}
}

const namespace = "replayd_engine_"
