package main

// overview is for whoever opens Grafana first: six figures, three pictures, and links to where the answers are. It asks for recorded series
// alone, since it is of the whole fleet.
func overview() *board {
	b := newBoard("replayd-overview", "replayd / Overview",
		"Do the services meet their objectives, which do not, and can the figures be trusted? Each figure links to the dashboard with the details.",
		nil, datasource(), cluster(), namespace(),
		choices("workload", "Workload", `label_values(replayd_requests_expected_total{`+here+`}, workload)`),
		choices("target", "Target", `label_values(replayd_requests_expected_total{`+here+`,workload=~"$workload"}, target)`), model())
	b.linksWith("datasource", "cluster", "namespace")

	const (
		eligible  = `workload:replayd_requests_eligible:rate5m{` + of + `}`
		good      = `workload:replayd_goodput_requests:rate5m{` + of + `}`
		ttft      = `workload:replayd_ttft_seconds:quantile5m{` + of + `,quantile="0.9"}`
		power     = `target:replayd_gpu_power_watts:avg5m{` + onTarget + `}`
		queue     = `target:replayd_engine_requests_waiting:avg5m{` + onTarget + `}`
		below     = `count(` + badNow + ` > ` + mayBeBad + `)`
		reachable = `min by (cluster, namespace, target) (replayd_target_up{` + onTarget + `})`
	)
	b.put(4, 4,
		stat("Attainment", "percentunit", "Service attainment of the worst workload: good ÷ eligible requests of the last 5 minutes. Requests that the guard held back are not eligible. Red: a workload is below its objective, so its error budget burns. Fleet lists the workloads, worst first.",
			"ReplaydSLOBurnFast", query{`1 - max(` + badNow + `) unless on () ` + below, ""}, query{`1 - max(` + badNow + `) and on () ` + below, ""}).
			thresholds(green).coloredQuery("B", "red").set(object{"decimals": 1}),
		stat("Targets down", "short", "Targets that no request and no probe reaches. Without answers no request is eligible, so service attainment does not show it. Red: check the engine first.",
			"ReplaydTargetUnreachable", query{down(reachable), ""}).thresholds(green, step{1, "red"}),
		stat("TTFT p90", "s", "The highest p90 of TTFT of a workload, over the ok requests of the last 5 minutes. Canary compares it with the SLO.",
			"ReplaydTTFTRegression", query{`max(` + ttft + `)`, ""}).thresholds("text"),
		stat("Engine queue", "short", "Requests in the queues of all engines, averaged over 5 minutes. A queue means more load than the engines can take: open Correlation.",
			"ReplaydOverload", query{`sum(` + queue + `)`, ""}).thresholds("text").set(object{"decimals": 0}).needs("no engine metrics"),
		stat("Alerts firing", "short", "Firing alerts of replayd's rules for the current selection, and on processes. Fleet has their names.",
			"How to read this", query{`count(` + alarms + `) or 0 * count(` + dueNow + `)`, ""}).thresholds(green, step{1, "red"}),
		stat("GPU power", "watt", "Power of the GPUs of all targets, averaged over 5 minutes. Correlation shows it next to the load.",
			"ReplaydEnergyOutOfLine", query{`sum(` + power + `)`, ""}).thresholds("text").needs("no GPU metrics"),
	)
	for i, to := range []string{"fleet", "fleet", "canary", "correlation", "fleet", "correlation"} {
		b.Panels[i].opens(to)
	}
	b.put(24, 7, timeseries("Service attainment: the ten lowest workloads", "percentunit",
		"Good ÷ eligible requests over 5 minutes, of the ten workloads with the lowest average in the time range. One workload alone has its own problem; several at once share a cluster, a release or a network.",
		"ReplaydSLOBurnFast", query{`1 - (` + badNow + ` and topk(10, avg_over_time(` + badNow + `[$__range] @ end())))`, workloadName}).
		set(object{"max": 1}).custom(object{"axisSoftMin": 0.95, "fillOpacity": 0}).opens("fleet"))
	b.put(12, 7,
		timeseries("TTFT p90 by workload", "s",
			"p90 of TTFT of ok requests over 5 minutes, of the ten workloads with the highest average in the time range. Canary compares it with the same place of the trace before.",
			"ReplaydTTFTRegression", query{ttft + ` and topk(10, avg_over_time(` + ttft + `[$__range] @ end()))`, workloadName}).
			set(object{"min": 0}).custom(object{"fillOpacity": 0}).opens("canary"),
		timeseries("Requests expected, good and bad", "reqps",
			"Requests that fell due, and that were good or bad, over 5 minutes. Expected above the sum of the others: replayd dropped or held back requests; Replay health shows why.",
			"ReplaydErrorRatio",
			query{`sum(` + dueNow + `)`, "expected"}, query{`sum(` + good + `)`, "good"},
			query{`clamp_min(sum(` + eligible + `) - sum(` + good + `), 0)`, "bad"}).
			set(object{"min": 0}).colored("^expected$", blue).colored("^good$", green).colored("^bad$", "red").opens("health"),
	)
	return b.restNeeds("No workload of this selection in this time.")
}
