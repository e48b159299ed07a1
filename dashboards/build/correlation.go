package main

import (
	"fmt"
	"slices"
	"strings"
)

// correlation holds client, engine and GPU of one target against one another on one time axis. Its first row fits a screen of 1440 × 900.
// All axes are equally wide, so that an instant has one place in each column, and the crosshair is shared.
func correlation() *board {
	b := newBoard("replayd-correlation", "replayd / Correlation",
		"Client, engine and GPU of one target on one time axis. Find the instant at which the client slowed down, then read down: the first panel that changed with it shows the cause.",
		annotations(), datasource(), cluster(), namespace(), targetOf(""), choices("workload", "Workload", `label_values(replayd_requests_expected_total{`+onTarget+`}, workload)`),
		model(), before())
	b.linksWith("datasource", "cluster", "namespace", "target")
	if correlationPage != "" {
		b.opensPage("TTFT is up: whose is it?", correlationPage+"#ttft-is-up-whose-is-it")
	}
	client, clientMore := ofClient()
	engine, engineMore := ofEngine()
	gpu, gpuMore := ofGPU()
	router := ofRouter()
	for _, p := range slices.Concat(client, clientMore) {
		p.needs("No request ended ok in this time.")
	}
	for _, p := range slices.Concat(engine, engineMore) {
		p.needs("No engine metrics in this time: see metrics.url in docs/reference/configuration.md.")
	}
	for _, p := range router {
		p.needs("The router publishes none of this, or no page is named under router.url: see docs/reference/configuration.md.")
	}
	for _, p := range slices.Concat(gpu, gpuMore) {
		p.needs("No GPU metrics: name their source under gpus: in replayd.yaml, see docs/reference/configuration.md.")
	}
	put := func(panels ...*panel) {
		for i, p := range panels {
			width := 12
			if i == len(panels)-1 && i%2 == 0 { // it would stand alone
				width = 24
			}
			b.put(width, 6, aligned(p))
		}
	}
	b.row("Client, engine and GPU")
	put(slices.Concat(client, engine, gpu)...)
	b.row("Client")
	put(clientMore...)
	b.row("Engine")
	put(engineMore...)
	b.collapsedRow("Router and replicas")
	put(router...)
	b.collapsedRow("GPU: utilization, clocks, temperature, memory, energy, errors")
	put(gpuMore...)
	return b
}

// aligned makes the axis as wide as that of all the others: wide enough for every unit here.
func aligned(p *panel) *panel {
	const pixels = 72
	if y, ok := p.Options["yAxis"].(object); ok { // of heatmaps
		y["axisWidth"] = pixels
		return p
	}
	return p.custom(object{"axisWidth": pixels})
}

// redFrom draws a dashed line at the value from which values are bad.
func (p *panel) redFrom(value float64) *panel {
	return p.thresholds("transparent", step{value, "red"}).custom(object{"thresholdsStyle": object{"mode": "dashed"}})
}

// line draws a series of a stack as a line over the stack.
func (p *panel) line(series string) *panel {
	return p.override("^"+series+"$", "custom.stacking", object{"mode": "none", "group": "A"}, "custom.fillOpacity", 0, "custom.lineWidth", 2)
}

// perSecond is the summed rate of a client counter. with is empty or has further matchers.
func perSecond(name, with string) string {
	return fmt.Sprintf(`sum(rate(%s{%s%s}[$__rate_interval]))`, name, of, with)
}

// engineRate is the rate of an engine counter. Every replica and rank counts once, however many shards scrape it.
func engineRate(name string) string {
	return fmt.Sprintf(`sum(max by (cluster, namespace, address, rank) (rate(%s{%s}[$__rate_interval])))`, name, onTarget)
}

// mean is the mean of a histogram. Without traffic it is NaN, which is a gap. Duplicates of an
// engine's histogram, scraped by several shards, cancel out.
func mean(name, selector string) string {
	sum := func(series string) string {
		return fmt.Sprintf(`sum(rate(%s{%s}[$__rate_interval]))`, series, selector)
	}
	return fmt.Sprintf(`(%s / %s)`, sum(name+"_sum"), sum(name+"_count"))
}

// lacks says in a panel's legend which of its figures the engine does not publish: none of the series, by their full
// names, is there in the whole time range although the engine is known. Without any engine metrics the panel has no
// such line. The line itself is not drawn.
func (p *panel) lacks(figure string, series ...string) *panel {
	there := make([]string, len(series))
	for i, name := range series {
		there[i] = fmt.Sprintf("group(last_over_time(%s{%s}[$__range] @ end()))", name, onTarget)
	}
	legend := "{{engine}} does not publish " + figure
	p.Targets = append(p.Targets, target{
		RefID: string(rune('A' + len(p.Targets))), Datasource: prometheus(), LegendFormat: legend, Range: true,
		Interval: "$scrape",
		Expr:     `0 * max by (engine) (replayd_engine_info{` + onTarget + `}) unless on () (` + strings.Join(there, " or ") + `)`,
	})
	pattern := "/ does not publish " + figure + "$/"
	return p.colored(pattern, "text").override(pattern, "custom.lineWidth", 0, "custom.fillOpacity", 0,
		"custom.hideFrom", object{"tooltip": true, "viz": false, "legend": false})
}

// spread is the average of several series, and their minimum and maximum if there is more than one.
func spread(each string) []query {
	several := " and on () count(" + each + ") > 1"
	return []query{{"avg(" + each + ")", "average"}, {"max(" + each + ")" + several, "highest"}, {"min(" + each + ")" + several, "lowest"}}
}

// ofClient are the panels of what replayd measures: those of the first screen, and more.
func ofClient() (first, more []*panel) {
	buckets := func(name string) query {
		return query{fmt.Sprintf(`sum by (le) (rate(replayd_%s_seconds_bucket{%s}[$__rate_interval]))`, name, of), "{{le}}"}
	}
	p90 := compared(func(offset string) string { return quantile(0.9, "ttft", offset) }, "p90")
	first = []*panel{
		heatmap("Time to first token (TTFT)", "s",
			"Time to first token of ok requests, from the write. A row is a range of times; brighter means more requests. If the band rises, the service is slower. A second band above it: some requests wait; read down for the reason. Failed requests are not included: see Requests due and by outcome.",
			"How to read this", buckets("ttft")),
	}
	more = []*panel{
		heatmap("Inter-token latency (ITL)", "s",
			"Time between content chunks. A higher band: slower decode, from a larger batch or a throttled GPU. A second band far above: decode stalls while the engine prefills other requests, or a proxy buffers chunks.",
			"How to read this", buckets("itl")),
		timeseries("TTFT p50 and p90, now and before", "s",
			"p50 and p90 of TTFT of ok requests. Pale: p90 at the same place of the trace before. Above the pale line the service is slower, since the load is the same. Requests above the dashed line miss the SLO.",
			"ReplaydTTFTRegression", append(p90, query{quantile(0.5, "ttft", ""), "p50"}, slo("ttft"))...).
			set(object{"min": 0}).colored("^p90$", blue).colored("^p50$", "super-light-blue").paleBefore().redSLO(),
		timeseries("Requests due and by outcome", "reqps",
			"Requests per second that fall due, and how they ended. Failed and dropped requests are in no latency above: if there are any, look at them first. Canary shows the outcomes, Replay health the drop reasons.",
			"ReplaydErrorRatio",
			query{perSecond("replayd_requests_expected_total", ""), "due"},
			query{perSecond("replayd_requests_total", `,outcome="ok"`), "ok"},
			query{perSecond("replayd_requests_total", `,outcome!~"ok|cancelled"`), "failed"},
			query{perSecond("replayd_requests_dropped_total", `,reason!="filtered"`), "dropped"}).
			set(object{"min": 0}).colored("^due$", blue).colored("^ok$", green).colored("^failed$", "red").colored("^dropped$", "orange"),
		timeseries("TPOT: client and engine", "s",
			"Mean time per output token (TPOT) of replayd's ok requests, and of all requests that the engine finished. Both up: a larger batch or a slower GPU. Only the client's up: a proxy buffers chunks, or other clients have other answers. Engines without this metric have no line.",
			"ReplaydTPOTRegression",
			query{mean("replayd_engine_tpot_seconds", onTarget), "engine"}, query{mean("replayd_tpot_seconds", of), "client"}).
			set(object{"min": 0}).colored("^engine$", orange).colored("^client$", blue).
			lacks("TPOT", "replayd_engine_tpot_seconds", "replayd_engine_tpot_seconds_count"),
	}
	return first, more
}

// ofEngine are the panels of the engine's own metrics: those of the first screen, and more.
func ofEngine() (first, more []*panel) {
	gauge := func(name string) string {
		return fmt.Sprintf(`max by (cluster, namespace, address, rank) (replayd_engine_%s{%s})`, name, onTarget)
	}
	recorded := func(name string) string { return fmt.Sprintf(`max(target:replayd_%s{%s})`, name, onTarget) }
	client, engine := mean("replayd_ttft_seconds", of), mean("replayd_engine_ttft_seconds", onTarget)
	made, got := engineRate("replayd_engine_generation_tokens_total"), perSecond("replayd_tokens_total", `,kind="output"`)
	// The engine generates for all workloads of the target, whichever is chosen.
	all := `sum(rate(replayd_tokens_total{` + onTarget + `,kind="output"}[$__rate_interval]))`
	prompt, looked := engineRate("replayd_engine_prompt_tokens_total"), engineRate("replayd_engine_prefix_cache_queries_tokens_total")
	hits := engineRate("replayd_engine_prefix_cache_hits_tokens_total")
	cached := fmt.Sprintf(`(%s + (%s or vector(0)))`, hits, engineRate("replayd_engine_external_prefix_cache_hits_tokens_total"))
	queue, prefill := mean("replayd_engine_queue_seconds", onTarget), mean("replayd_engine_prefill_seconds", onTarget)
	first = []*panel{
		timeseries("TTFT by part: queue, prefill, network", "s",
			"Mean TTFT of the client (line) over its parts: the engine's queue, its prefill, the rest of the engine's TTFT, and the network. Queue up: more load than the batch or the KV cache can take, or other clients. Prefill up: fewer prefix cache hits, longer prompts or a slower GPU. Network up: network, proxy, or an API server without CPU. The engine's means include all its traffic.",
			"ReplaydClientEngineDisagree",
			query{queue, "engine: queue"}, query{prefill, "engine: prefill"},
			query{fmt.Sprintf(`clamp_min(%s - (%s or vector(0)) - (%s or vector(0)), 0)`, engine, queue, prefill), "engine: else"},
			query{fmt.Sprintf(`clamp_min(%s - %s, 0)`, client, engine), "network"},
			query{client, "client"}).
			set(object{"min": 0}).stacked().line("client").colored("^client$", blue).colored("^network$", purple).colored("^engine: queue$", "red").colored("^engine: prefill$", orange).colored("^engine: else$", "yellow").
			lacks("TTFT", "replayd_engine_ttft_seconds", "replayd_engine_ttft_seconds_count"),
		timeseries("Requests in replayd and in the engine", "short",
			"Requests that wait for a lane in replayd, are in flight, wait in the engine's queue, and run in the engine. A queue means more load than the engine can take. In flight above running plus queue: requests are held up in the network, a proxy or the API server. Running above in flight: other clients, or replayd's workloads that are not chosen. While a prefill engine and a decode engine both have a request, it counts twice.",
			"ReplaydOverload",
			query{fmt.Sprintf(`sum(replayd_requests_in_flight{%s})`, of), "in flight"},
			query{"sum(" + gauge("requests_running") + ")", "engine: running (batch)"},
			query{"sum(" + gauge("requests_waiting") + ")", "engine: waiting (queue)"},
			query{fmt.Sprintf(`sum(replayd_requests_waiting{%s})`, of), "replayd: waiting for a lane"}).
			set(object{"min": 0, "decimals": 0}).colored("^in flight$", blue).colored("^engine: running \\(batch\\)$", orange).colored("^engine: waiting \\(queue\\)$", "red").colored("^replayd: waiting for a lane$", purple).
			lacks("running and waiting requests", "replayd_engine_requests_running", "replayd_engine_requests_waiting"),
		timeseries("KV cache usage", "percentunit",
			"Fraction of the KV cache in use: the average over replicas and ranks, and the fullest and the emptiest if there are several. Near 100 % the engine queues or preempts requests: reduce the load or the context length, or give the cache more memory.",
			"ReplaydOverload", spread(gauge("kv_cache_usage_ratio"))...).
			set(object{"min": 0, "max": 1}).colored("^average$", orange).custom(object{"fillOpacity": 0}).redFrom(0.95).
			lacks("KV cache usage", "replayd_engine_kv_cache_usage_ratio"),
		timeseries("Output tokens: engine, client, other clients", "si:tok/s",
			"Output tokens per second that the engine generates, that the chosen workloads and replayd's others on this target receive (counted at the end of ok answers), and the rest, which goes to other clients. Other clients' tokens while TTFT rises: the target is shared, and the guard should hold replayd back. Small values mean no other clients: replayd counts tokens when an answer ends, so long answers make the difference vary. Negative values are shown as 0.",
			"ReplaydClientEngineDisagree",
			query{made, "engine"}, query{got, "client"}, query{all + " - " + got + " > 0.01", "replayd's other workloads"},
			query{"clamp_min(" + made + " - " + all + ", 0)", "other clients"}).
			colored("^engine$", orange).colored("^client$", blue).colored("^other clients$", "purple").
			colored("^replayd's other workloads$", "super-light-blue").
			lacks("output tokens", "replayd_engine_generation_tokens_total"),
	}
	more = []*panel{
		timeseries("Preemptions", "cps",
			"Preemptions per second: requests that were removed from the batch because the KV cache was full, and must be computed again. Above 0, their streams pause: the load exceeds the cache.",
			"ReplaydOverload", query{engineRate("replayd_engine_preemptions_total"), "preemptions"}).
			set(object{"min": 0, "decimals": 2}).custom(object{"axisSoftMax": 1}).colored("^preemptions$", "red").
			lacks("preemptions", "replayd_engine_preemptions_total"),
		timeseries("Prefix cache hit ratio", "percentunit",
			"Fraction of prompt tokens found in the engine's prefix cache, or in one outside it, over 5 minutes: by the engine's metrics, by its answers to replayd, and for an endless cache over the whole trace. Far below the trace's ideal: evictions, a restart, or a router that sends turns of one session to several replicas.",
			"ReplaydPrefixHitsLow",
			query{recorded("engine_prefix_cache_hit_ratio:rate5m"), "engine"}, query{recorded("cached_tokens_ratio:rate5m"), "client's own"},
			query{recorded("trace_prefix_hit_ratio:rate5m"), "the trace's ideal"}).
			set(object{"min": 0, "max": 1}).colored("^engine$", orange).colored("^client's own$", blue).
			dashed("^the trace's ideal$", green).
			lacks("prefix cache hits", "replayd_engine_prefix_cache_hits_tokens_total", "replayd_engine_prefix_cache_hit_ratio"),
		timeseries("Prompt tokens: computed and cached", "si:tok/s",
			"Prompt tokens per second that the engine received: found in the prefix cache or in one outside the engine, or to compute, which is the work of prefill. More to compute than before at the same place of the trace: the prefix cache has lost entries, and TTFT rises.",
			"ReplaydPrefixHitsLow",
			// llama.cpp counts reused tokens among those it looks up, but not among its prompt tokens; vLLM without a
			// prefix cache looks up none.
			query{fmt.Sprintf(`clamp_min((%[1]s > %[2]s or %[2]s) - (%[3]s or vector(0)), 0)`, looked, prompt, cached), "to compute"},
			query{cached, "found in a cache"}).
			set(object{"min": 0}).stacked().colored("^to compute$", orange).colored("^found in a cache$", green).
			lacks("prompt tokens", "replayd_engine_prompt_tokens_total"),
		timeseries("Speculative decoding: accepted drafts", "percentunit",
			"Fraction of the drafted tokens that the model accepted. Below its usual value: other prompts, another sampling, or a draft model that does not fit; each step then yields fewer tokens, and TPOT rises. The engine does not publish drafts: it does not draft, or does not say so.",
			"ReplaydTPOTRegression",
			query{engineRate("replayd_engine_speculative_accepted_tokens_total") + " / (" + engineRate("replayd_engine_speculative_drafted_tokens_total") + " > 0)", "accepted"},
			query{"avg(" + gauge("speculative_acceptance_ratio") + " > 0)", "accepted, by the engine's ratio"}).
			set(object{"min": 0, "max": 1}).colored("^accepted", green).
			lacks("drafts", "replayd_engine_speculative_drafted_tokens_total", "replayd_engine_speculative_acceptance_ratio"),
	}
	return first, more
}
