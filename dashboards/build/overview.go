package main

// overview is for whoever opens Grafana first: six figures, three pictures, and links to where the answers are. It asks for recorded series
// alone, since it is of the whole fleet.
func overview() *board {
	b := newBoard("replayd-overview", "replayd / Overview",
		"Do the services keep their objectives, for whom not, and can the measurement be trusted? Each figure leads to the dashboard that says more.",
		nil, datasource(), cluster(), namespace(),
		choices("workload", "Workload", `label_values(replayd_requests_expected_total{`+here+`}, workload)`),
		choices("target", "Target", `label_values(replayd_requests_expected_total{`+here+`,workload=~"$workload"}, target)`), model())
	b.linksWith("datasource", "cluster", "namespace")

	const (
		eligible = `workload:replayd_requests_eligible:rate5m{` + of + `}`
		good     = `workload:replayd_goodput_requests:rate5m{` + of + `}`
		ttft     = `workload:replayd_ttft_seconds:quantile5m{` + of + `,quantile="0.9"}`
		power    = `target:replayd_gpu_power_watts:avg5m{` + onTarget + `}`
		queue    = `target:replayd_engine_requests_waiting:avg5m{` + onTarget + `}`
		below    = `count(` + badNow + ` > ` + mayBeBad + `)`
		byName   = "{{namespace}} {{workload}} on {{target}} {{model}}"
	)
	b.put(4, 4,
		stat("Lowest attainment", "percentunit", "Service attainment of the worst workload: good ÷ eligible requests of the last 5 minutes. Red: a workload is below its objective, so its error budget burns. Fleet has the table, worst first.",
			"ReplaydSLOBurnFast", query{`1 - max(` + badNow + `) unless on () ` + below, ""}, query{`1 - max(` + badNow + `) and on () ` + below, ""}).
			thresholds(green).coloredQuery("B", "red").set(object{"decimals": 1}),
		stat("Below objective", "short", "Workloads of which more requests of the last 5 minutes are bad than their objective allows.",
			"ReplaydSLOBurnFast", query{below + ` or 0 * count(` + badNow + `)`, ""}).thresholds(green, step{1, "red"}),
		stat("Highest TTFT p90", "s", "The p90 of TTFT of ok requests of the last 5 minutes, of the workload in which it is highest. Whether it is too high depends on its SLO: open Canary.",
			"ReplaydTTFTRegression", query{`max(` + ttft + `)`, ""}).thresholds("text"),
		stat("Engine queue", "short", "Requests that wait in the queues of all engines, on average over 5 minutes. A queue is more load than the engines take: open Correlation.",
			"ReplaydOverload", query{`sum(` + queue + `)`, ""}).thresholds("text").set(object{"decimals": 0}).needs("no engine metrics"),
		stat("Alerts firing", "short", "Alerts of replayd's rules that fire, for what is chosen, and those on processes. Fleet has their names.",
			"How to read this", query{`count(` + alarms + `) or 0 * count(` + dueNow + `)`, ""}).thresholds(green, step{1, "red"}),
		stat("GPU power", "watt", "Power of the GPUs of all targets, on average over 5 minutes. Correlation holds it against the load.",
			"ReplaydEnergyOutOfLine", query{`sum(` + power + `)`, ""}).thresholds("text").needs("no GPU metrics"),
	)
	for i, to := range []string{"fleet", "fleet", "canary", "correlation", "fleet", "correlation"} {
		b.Panels[i].opens(to)
	}
	b.put(24, 7, timeseries("Service attainment: the ten lowest workloads", "percentunit",
		"Good ÷ eligible requests over 5 minutes, of the ten workloads that were lowest on average in the time shown. One that falls alone has a problem of its own; several at once share a cluster, a release or a network.",
		"ReplaydSLOBurnFast", query{`1 - (` + badNow + ` and topk(10, avg_over_time(` + badNow + `[$__range] @ end())))`, byName}).
		set(object{"max": 1}).custom(object{"axisSoftMin": 0.95, "fillOpacity": 0}).opens("fleet"))
	b.put(12, 7,
		timeseries("TTFT p90 by workload", "s",
			"p90 of TTFT of ok requests over 5 minutes, of the ten workloads in which it was highest on average in the time shown. Hold it against the same place of the trace before in Canary.",
			"ReplaydTTFTRegression", query{ttft + ` and topk(10, avg_over_time(` + ttft + `[$__range] @ end()))`, byName}).
			set(object{"min": 0}).custom(object{"fillOpacity": 0}).opens("canary"),
		timeseries("Requests expected, good and bad", "reqps",
			"Requests that fell due, and those that were good and that were not, of all that is chosen, over 5 minutes. Expected above the others: requests are dropped, or held back by replayd itself, which Replay health explains.",
			"ReplaydErrorRatio",
			query{`sum(` + dueNow + `)`, "expected"}, query{`sum(` + good + `)`, "good"},
			query{`clamp_min(sum(` + eligible + `) - sum(` + good + `), 0)`, "bad"}).
			set(object{"min": 0}).colored("^expected$", blue).colored("^good$", green).colored("^bad$", "red").opens("health"),
	)
	return b
}
