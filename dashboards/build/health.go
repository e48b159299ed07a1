package main

import (
	"fmt"

	"replayd/internal/measure"
)

// mine selects the chosen workload in the chosen processes.
// process selects series of these processes without a workload.
const (
	mine    = of + `,instance=~"$instance"`
	process = here + `,instance=~"$instance"`

	byProcess = `by (cluster, namespace, job, instance)`
)

// health shows whether the numbers can be trusted. It is about replayd, not the service.
func health() *board {
	b := newBoard("replayd-health", "replayd / Replay health",
		"Can the figures be trusted? If the first two rows are green, the other dashboards show the service and not replayd.",
		annotations(), datasource(), cluster(), namespace(),
		// The process comes before the workload: an alert on a process has no workload, and its link selects the
		// process's first one.
		choices("instance", "Process", `label_values(replayd_requests_expected_total{`+here+`}, instance)`),
		workload(`,instance=~"$instance"`), targetOf(`,instance=~"$instance",workload=~"$workload"`), model())
	b.put(4, 3, checks()...)

	b.row("Lateness: is the load sent on time?")
	b.put(8, 8, lateness(), laneWait(), sessionWait())

	b.row("Load: is it the trace's?")
	b.put(8, 8, sentAsExpected(), drops(), lanes(), accounted(), placeInLoop(), nextDue())

	b.row("Answers: are they measured well?")
	b.put(6, 8, readDelay(), mergedReads(), lengths(), meanings())

	b.row("Processes")
	b.put(8, 8, ownCPU(), ownMemory(), ownGoroutines(), ownPauses(), wallClocks(), changes())

	b.row("Engines and GPUs: are they scraped?")
	for _, p := range []*panel{unread(), scrapeTime(), scrapeFailures()} {
		b.put(8, 8, p.needs("No page of an engine or a GPU: see metrics.url and gpus in docs/reference/configuration.md."))
	}
	return b.restNeeds("No request of this workload in this time, or Prometheus does not scrape the process.")
}

// rateOf sums the rates of a counter.
func rateOf(name, more, window string) string {
	return fmt.Sprintf(`sum(rate(replayd_%s_total{%s%s}[%s]))`, name, mine, more, window)
}

// ofProcess limits a series that every process has to the processes that play the workload.
func ofProcess(expr string) string {
	return expr + ` and on (cluster, namespace, job, instance, pod, container, endpoint) replayd_requests_expected_total{` + mine + `}`
}

func mineQuantile(q float64, name string) string {
	return fmt.Sprintf(`histogram_quantile(%v, sum by (le) (rate(replayd_%s_seconds_bucket{%s}[$__rate_interval])))`, q, name, mine)
}

// waits plots a histogram of replayd itself. The mean is exact, a quantile is not: for values of 0, p99 is the 100 µs
// of the zero bucket.
func waits(title, name, description, section string) *panel {
	mean := sumOf(mine, name, "$__rate_interval") + ` / (` + countOf(mine, name, "$__rate_interval") + ` > 0)`
	return spreadOf(title, name, description, section, query{mean, "mean"})
}

// spreadOf plots a mean, p50 and p99.
func spreadOf(title, name, description, section string, mean query) *panel {
	return timeseries(title, "s", description, section, mean, query{mineQuantile(0.5, name), "p50"}, query{mineQuantile(0.99, name), "p99"}).
		set(object{"min": 0}).custom(object{"fillOpacity": 0, "axisSoftMax": 0.001}).colored("/mean$/", orange).quantileColors()
}

func lateness() *panel {
	return spreadOf("Lateness", "lateness",
		"From the due instant to the first byte of the request, without the time to connect. Own: mean without lane wait; above 5 ms the load is not the trace's. Only p99 up: the process had no CPU.", "ReplaydLate",
		query{ownLateness(mine, "$__rate_interval"), "own, mean"})
}

func laneWait() *panel {
	return waits("Lane wait", "lane_wait",
		"The part of the lateness that was spent waiting for a free lane. Mean above 0: lanes limits the load, and TTFT looks too good. The service is slower than the trace needs, or lanes is too low.", "ReplaydOverload")
}

func sessionWait() *panel {
	return waits("Session wait", "session_wait",
		"How long after its due instant a request waited for the previous turn. It is not lateness, but it shifts the load. If it grows, answers take longer than in the trace.", "How to read this")
}

func sentAsExpected() *panel {
	return timeseries("Requests expected, finished and dropped", "reqps",
		"Requests that fell due, that ended, and that were dropped. Finished follows expected after the duration of a request. If they differ for longer, check the drops, then the lanes.", "ReplaydMissed",
		query{rateOf("requests_expected", "", "$__rate_interval"), "expected"}, query{rateOf("requests", "", "$__rate_interval"), "finished"},
		query{rateOf("requests_dropped", `,reason!="filtered"`, "$__rate_interval"), "dropped"}).
		set(object{"min": 0}).colored("^expected$", blue).colored("^finished$", green).colored("^dropped$", "orange")
}

func drops() *panel {
	return timeseries("Dropped requests by reason", "reqps",
		"Dropped requests by reason. overload: no lane; guard: the engine is at a limit; missed: replayd did not run; budget, paused, shutdown: as configured or asked for. Pale, filtered: longer than the configured lengths, and not expected. Except for the first three, reasons that did not occur in the time range are left out.", "ReplaydMissed",
		query{`sum by (reason) (rate(replayd_requests_dropped_total{` + mine + `}[$__rate_interval]))
  and on (reason) (sum by (reason) (increase(replayd_requests_dropped_total{` + mine + `}[$__range] @ end())) > 0 or sum by (reason) (replayd_requests_dropped_total{` + mine + `,reason=~"guard|missed|overload"}))`, "{{reason}}"}).
		set(object{"min": 0}).custom(object{"axisSoftMax": 0.1}).
		dropColors()
}

func lanes() *panel {
	return timeseries("Requests in flight and waiting", "short",
		"In flight: on a lane. Waiting: due, and waiting for a lane or for the previous turn. Waiting above 0 for some time: there are too few lanes, or too much load.", "ReplaydOverload",
		query{`sum(replayd_requests_in_flight{` + mine + `})`, "in flight"}, query{`sum(replayd_requests_waiting{` + mine + `})`, "waiting in replayd"}).
		set(object{"min": 0, "decimals": 0}).colored("^in flight$", blue).colored("^waiting in replayd$", orange)
}

func accounted() *panel {
	return timeseries("Unaccounted requests", "short",
		"Expected − finished − dropped − in flight − waiting, by process. It is 0 at every scrape. Another value is a bug in replayd: report it with the version, and do not trust counts until it is fixed.", "ReplaydAccountingBroken",
		query{unaccounted, "{{instance}}"}).
		set(object{"decimals": 0}).custom(object{"axisSoftMin": -1, "axisSoftMax": 1})
}

func placeInLoop() *panel {
	return timeseries("Position in the trace by process", "dthms",
		"The trace time that each process plays, and the duration of a loop. Shards share one line. A flat line: the last row was sent, or the replay has stopped. Separate lines: the shards do not share an epoch.", "ReplaydShardMissing",
		query{`max ` + byProcess + ` (replayd_position_seconds{` + mine + `})`, "{{instance}}"}, query{`max(replayd_loop_duration_seconds{` + mine + `})`, "loop"}).
		set(object{"min": 0}).dashed("^loop$", "text")
}

func nextDue() *panel {
	return timeseries("Time to the next request", "dthms",
		"Time until the next row of the trace falls due, by process, and the part of each loop without rows, in gaps of over a minute. Minutes or hours: nothing is sent until then, because the trace or the schedule has no row, and no figure moves.", "How to read this",
		query{`clamp_min(max ` + byProcess + ` (replayd_next_due_timestamp_seconds{` + mine + `}) - time(), 0)`, "{{instance}}"},
		query{`max(replayd_loop_idle_ratio{` + mine + `} * replayd_loop_duration_seconds{` + mine + `})`, "without rows, in a loop"}).
		set(object{"min": 0, "noValue": "no data, or a closed loop, whose requests follow answers"}).dashed("^without rows, in a loop$", "text")
}

func readDelay() *panel {
	return waits("Read delay", "read_delay",
		"Time of the read − the kernel's receive time: the error of a clock after the read. With kernel times it is no error, but milliseconds mean that the process lacks CPU. Empty if times come from the read.", "ReplaydLate").
		set(object{"noValue": "no data, or the kernel gives no times"})
}

func mergedReads() *panel {
	return timeseries("Coalesced reads", "percentunit",
		"Reads that held more than one content chunk ÷ intervals between chunks. Chunks of one read have the same time, so ITL has values of 0. Above a few percent: the engine or a proxy sends several chunks at once, or replayd lacks CPU.", "How to read this",
		query{rateOf("coalesced_reads", "", "$__rate_interval") + ` / (` + countOf(mine, "itl", "$__rate_interval") + ` > 0)`, "coalesced reads"}).
		set(object{"min": 0}).custom(object{"axisSoftMax": 0.01}).colored("^coalesced reads$", blue)
}

func lengths() *panel {
	by := func(name, more string) string {
		return rateOf(name, more, "$__rate_interval") + ` / (` + rateOf("requests", `,outcome="ok"`, "$__rate_interval") + ` > 0)`
	}
	return timeseries("Input and output length mismatches", "percentunit",
		"Fraction of the ok answers with another prompt or output length than the trace asks for, and without usage, whose length is unknown. Prompt: the chat template is not measured yet, or the tokenizer differs. Output: the engine stops early.", "ReplaydOutputShort",
		query{by("length_mismatch", `,kind="prompt"`), "other prompt"}, query{by("length_mismatch", `,kind="output"`), "other output"}, query{by("responses_without_usage", ""), "no usage"}).
		set(object{"min": 0}).custom(object{"axisSoftMax": 0.01}).colored("^other prompt$", orange).colored("^other output$", blue).colored("^no usage$", purple)
}

func meanings() *panel {
	by := func(grouping, name, more string) string {
		return `sum ` + grouping + `(rate(replayd_` + name + `_total{` + mine + more + `}[$__rate_interval])) / on() group_left () (` +
			rateOf("requests", "", "$__rate_interval") + ` > 0)`
	}
	p := timeseries("Answers not understood", "percentunit",
		"Events that replayd does not understand, unknown finish reasons, and usage to which a rule applied, each ÷ requests that ended. "+
			"Not understood: content may be missing, so TTFT may be too late; the log and the records show the bytes. "+
			"docs/reference/answers.md explains each.", "ReplaydOutputShort",
		query{by("", "unread_events", ""), "not understood"}, query{by("", "finish_reasons", `,reason="other"`), "unknown finish reason"},
		query{by("by (rule) ", "usage_rules", "") + ` > 0`, "usage: {{rule}}"}).
		set(object{"min": 0}).custom(object{"axisSoftMax": 0.01}).colored("^not understood$", "red").colored("^unknown finish reason$", orange)
	for i, rule := range measure.UsageRuleNames() {
		p.colored("^usage: "+rule+"$", blues[i])
	}
	if answersPage != "" {
		p.Links = append(p.Links, object{"title": "What an answer means", "url": answersPage, "targetBlank": true})
	}
	return p
}

func ownCPU() *panel {
	return timeseries("CPU cores in use", "short",
		"CPU cores that each process uses, and the fraction of time for which its cgroup throttled it. At the limit of the cgroup or the machine, replayd itself is late. Give it a core of its own, or use shards.", "ReplaydLate",
		query{`sum ` + byProcess + ` (` + ofProcess(`rate(process_cpu_seconds_total{`+process+`}[$__rate_interval])`) + `)`, "{{instance}}"},
		query{`sum(` + ofProcess(`rate(replayd_cgroup_cpu_throttled_seconds_total{`+process+`}[$__rate_interval])`) + `)`, "throttled"}).
		set(object{"min": 0}).colored("^throttled$", "red")
}

func ownMemory() *panel {
	return timeseries("Memory", "bytes",
		"Resident memory of each process. It is constant after the first loop. If it grows from loop to loop, take a heap profile and report it.", "ReplaydDown",
		query{`sum ` + byProcess + ` (` + ofProcess(`process_resident_memory_bytes{`+process+`}`) + `)`, "{{instance}}"}).set(object{"min": 0})
}

func ownGoroutines() *panel {
	return timeseries("Goroutines", "short",
		"Goroutines of each process. They follow the requests in flight and the number of engines. If they grow and the requests in flight do not, report it.", "ReplaydDown",
		query{`sum ` + byProcess + ` (` + ofProcess(`go_goroutines{`+process+`}`) + `)`, "{{instance}}"}).set(object{"min": 0, "decimals": 0})
}

func ownPauses() *panel {
	return timeseries("Share of time in garbage collection pauses", "percentunit",
		"Nothing runs during these pauses. Chunk times are the kernel's and stay right, but requests are sent late. Above 0.1 %: memory is short (GOMEMLIMIT), or the load is too large for one process.", "ReplaydLate",
		query{`sum ` + byProcess + ` (` + ofProcess(`rate(go_gc_duration_seconds_sum{`+process+`}[$__rate_interval])`) + `)`, "{{instance}}"}).
		set(object{"min": 0}).custom(object{"axisSoftMax": 0.001})
}

func wallClocks() *panel {
	return timeseries("Wall clock skew", "s",
		"Wall clock − the loop's own clock. It drifts by microseconds. A step means that the clock was set. Beyond 1 s the replay jumps to the wall clock, and the rows in between are missed.", "ReplaydMissed",
		query{`max ` + byProcess + ` (replayd_wall_clock_skew_seconds{` + mine + `})`, "{{instance}}"}).
		custom(object{"axisSoftMin": -0.001, "axisSoftMax": 0.001})
}

func changes() *panel {
	return timeseries("Time since the last reload", "s",
		"Age of the configuration of each process. It falls to 0 at a successful reload and at a start. If the processes of one workload differ, one did not get the new file, or refused it.", "ReplaydReloadFailed",
		query{`time() - max ` + byProcess + ` (` + ofProcess(`replayd_config_last_reload_success_timestamp_seconds{`+process+`}`) + `)`, "{{instance}}"}).set(object{"min": 0})
}

func unread() *panel {
	return timeseries("Pages that cannot be scraped", "short",
		"Metrics pages that cannot be scraped: replayd's by Prometheus, engines' by at least one replayd, and GPUs'. 0 is good; no line means that none is configured. replayd: check the process. Engines, GPUs: the log of replayd and the next panels have the reason.", "ReplaydEngineUnseen",
		query{down(`up{` + process + `} and on (cluster, namespace, job, instance, pod, container, endpoint) present_over_time(replayd_requests_expected_total{` + mine + `}[1h])`), "replayd"},
		query{down(enginesUp), "engines"}, query{down(`replayd_gpu_up{` + onTarget + `}`), "GPUs"}).
		set(object{"min": 0, "decimals": 0}).custom(object{"axisSoftMax": 1}).colored("^replayd$", "red").colored("^engines$", orange).colored("^GPUs$", purple)
}

// down counts the series that are 0. It is absent if there are no series.
func down(each string) string {
	return `count((` + each + `) == 0) or 0 * count(` + each + `)`
}

func scrapeTime() *panel {
	return timeseries("Scrape duration", "s",
		"Scrape duration of each engine's page and each GPU source. It does not delay requests. Near the interval, the figures are old. Long scrapes: a large page (classic histograms of many models), or a busy API server.", "ReplaydEngineUnseen",
		query{`max by (cluster, namespace, address) (replayd_engine_scrape_duration_seconds{` + onTarget + `})`, "engine {{address}}"},
		query{`max by (cluster, namespace, address) (replayd_gpu_scrape_duration_seconds{` + onTarget + `})`, "GPUs {{address}}"}).set(object{"min": 0})
}

func scrapeFailures() *panel {
	return timeseries("Scrape failures by reason", "short",
		"Failed scrapes of the last 5 minutes by reason. connect, timeout: the engine or the network. http, content_type, unknown: the address belongs to something else. parse, too_large: report the page.", "ReplaydEngineUnseen",
		query{`sum by (reason) (increase(replayd_engine_scrape_errors_total{` + onTarget + `}[5m]))`, "{{reason}}"}).
		set(object{"min": 0, "decimals": 0}).custom(object{"axisSoftMax": 1})
}
