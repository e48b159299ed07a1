package main

// ratioOf plots a latency's candidate ÷ baseline. The interval of several shards is the widest of them, and it is drawn as far as a quarter
// from the estimate: the first ones have no bounds.
func ratioOf(metric, title string) *panel {
	one := func(bound string) string {
		return fromComparison("ratio", `,metric="`+metric+`",bound="`+bound+`"`)
	}
	estimate := `avg(` + one("estimate") + `)`
	tolerance := `(1 + max(` + fromComparison("tolerance_ratio", `,metric="`+metric+`"`) + `))`
	within := func(bound, better, limit string) string {
		far := `(` + limit + ` * ` + estimate + `)`
		return bound + ` ` + better + ` on () ` + far + ` or on () (` + far + ` and on () ` + bound + `)`
	}
	return timeseries(title, "suffix:×",
		"Latency of the candidate ÷ latency of the baseline, as a median of blocks since the epoch, with the interval that holds it however often one looks. All of the interval above the red line: worse. All below: not worse. The interval is drawn as far as 25 % from the estimate. Mode watch: of the latest 60 blocks, without an interval; below the green line the candidate is faster.",
		"ReplaydCandidateWorse",
		query{within(`min(`+one("lower")+`)`, ">=", "0.75"), "lower"},
		query{within(`max(`+one("upper")+`)`, "<=", "1.25"), "upper"},
		query{tolerance, "tolerance"},
		query{`1 / ` + tolerance + ` and on () group(` + fromComparison("info", `,mode="watch"`) + `)`, "faster"},
		query{estimate, "ratio"}).
		set(object{"decimals": 2}).custom(object{"axisSoftMin": 0.9, "axisSoftMax": 1.1, "fillOpacity": 0}).
		colored("^lower$", pale).colored("^upper$", pale).override("^upper$", "custom.fillBelowTo", "lower", "custom.fillOpacity", 20).
		dashed("^tolerance$", "red").dashed("^faster$", green).colored("^ratio$", blue).override("^ratio$", "custom.lineWidth", 2)
}

func excessOf(metric, title, description string) *panel {
	one := `,metric="` + metric + `"`
	tolerance := `max(` + fromComparison("tolerance_ratio", one) + `)`
	return timeseries(title, "percentunit", description+" Red: the tolerance. In mode verdict since the epoch, in mode watch of the latest 60 blocks.",
		"ReplaydCandidateWorse",
		query{tolerance, "tolerance"},
		query{`-` + tolerance + ` and on () group(` + fromComparison("info", `,mode="watch"`) + `)`, "fewer"},
		query{`avg(` + fromComparison("excess_ratio", one) + `)`, "excess"}).
		custom(object{"fillOpacity": 0}).dashed("^tolerance$", "red").dashed("^fewer$", green).colored("^excess$", blue).override("^excess$", "custom.lineWidth", 2)
}

// metricColors gives each metric of a comparison its color.
func (p *panel) metricColors() *panel {
	return p.colored("/^ttft/", blue).colored("/^tpot/", orange).colored("/^e2e/", purple).
		colored("/^tail/", "yellow").colored("/^queued/", "super-light-blue").colored("/^bad/", "light-red")
}

// evidence is drawn from -3 to 6: far beyond the bounds the line would hide them.
func evidence(title, about, description string) *panel {
	return timeseries(title, "none", description+" The average of all shards, as a decimal logarithm: 2 is 100 to 1. Drawn from −3 to 6.",
		"ReplaydCandidateWorse",
		query{`clamp(` + averageEvidence(about) + `, -3, 6)`, "{{metric}}"},
		query{evidenceNeeded(about), "needed"}).
		custom(object{"axisSoftMin": 0, "fillOpacity": 0}).metricColors().dashed("^needed$", "red").needs("only in mode verdict")
}

func evidenceWorse() *panel {
	return evidence("Evidence for worse", "worse", "Evidence that the candidate is worse by more than the tolerance. A metric above the red line is a fail; a share of requests needs an excess above its tolerance too. One that falls has blocks within the tolerance.")
}

func evidenceNotWorse() *panel {
	return evidence("Evidence for not worse", "not_worse", "Evidence that a latency is not longer by more than the tolerance. A pass needs all three above the line. One that stays low: the ratio is near the tolerance, so only more blocks help.")
}

func changedMetrics() *panel {
	changed := `max by (metric, direction) (` + fromComparison("changed", "") + `)`
	return timeseries("Changed metrics", "none",
		"Metrics that are changed against the baseline, one step each. A metric ends where it is as before. After a change on purpose, begin anew: POST /-/comparisons/NAME/restart.",
		"ReplaydChanged",
		query{changed + ` and on (metric, direction) max by (metric, direction) (max_over_time(` + fromComparison("changed", "") + `[$__range] @ end())) == 1`, "{{metric}} {{direction}}"},
		query{`max(` + changed + `) == 0`, "none"}).
		set(object{"min": 0, "decimals": 0}).stacked().custom(object{"lineInterpolation": "stepAfter", "axisSoftMax": 3}).metricColors().
		colored("^none$", green).override("^none$", "custom.stacking", object{"mode": "none", "group": "A"}, "custom.fillOpacity", 0).needs("only in mode watch")
}

func answerLength() *panel {
	return timeseries("Length of answers", "suffix:×",
		"Output tokens of the candidate's answer ÷ those of the baseline's, the median of pairs since the epoch, averaged over shards. Below 1: the candidate says less, so its e2e is shorter without a faster engine.",
		"ReplaydCandidateWorse",
		query{`avg(` + fromComparison("output_length_ratio", "") + ` >= 0)`, "ratio"}). // NaN before there are lengths
		set(object{"decimals": 2}).custom(object{"axisSoftMin": 0.9, "axisSoftMax": 1.1, "fillOpacity": 0}).colored("^ratio$", blue)
}

func answerEnds() *panel {
	ends := func(by string) string {
		return `sum by (` + by + `) (rate(` + fromComparison("answers_total", "") + `[5m]))`
	}
	return timeseries("Answers by finish reason", "percentunit",
		"Answers that ended for a reason, as a share of each side's answers, over 5 minutes. Sides that differ: another model, another chat template, or other limits of length.",
		"ReplaydCandidateWorse",
		query{`(` + ends("side, finish_reason") + ` > 0) / on (side) group_left () ` + ends("side"), "{{side}} {{finish_reason}}"}).
		set(object{"min": 0, "max": 1}).custom(object{"fillOpacity": 0})
}

func pairsAndBlocks() *panel {
	a := func(expr string) string { return `60 * sum(rate(` + expr + `[5m]))` }
	return timeseries("Pairs and blocks a minute", "short",
		"Judged pairs of requests, and blocks (right axis), a minute, over 5 minutes. Pairs without blocks: the servers have a queue at every instant, or too few pairs met none.",
		"ReplaydComparisonBlind",
		query{a(fromComparison("pairs_total", `,result="judged"`)), "pairs"},
		query{a(fromComparison("blocks_total", `,metric="bad"`)), "blocks"}).
		set(object{"min": 0}).custom(object{"fillOpacity": 0}).colored("^pairs$", blue).colored("^blocks$", green).override("^blocks$", "custom.axisPlacement", "right")
}

func skippedBlocks() *panel {
	return timeseries("Skipped blocks by reason", "short",
		"Blocks a minute that say nothing about latencies, over 5 minutes. void: over 10 % of the pairs are void. few_calm: too few pairs met no queue, so lower the load. no_values: a side answers nothing.",
		"ReplaydComparisonBlind",
		query{`60 * sum by (reason) (rate(` + fromComparison("blocks_skipped_total", "") + `[5m]))`, "{{reason}}"}).
		set(object{"min": 0}).stacked().custom(object{"axisSoftMax": 1}).colored("^void$", "yellow").colored("^few_calm$", orange).colored("^no_values$", "red")
}

func voidPairs() *panel {
	return timeseries("Void pairs as a share", "percentunit",
		"Pairs that say nothing because of replayd itself, as a share of all pairs, over 5 minutes: a late write (over 5 % of TTFT), a pause, a spent budget. Often above the line: give replayd more CPU.",
		"ReplaydComparisonBlind",
		query{`sum(rate(` + fromComparison("pairs_total", `,result="void"`) + `[5m])) / (sum(rate(` + fromComparison("pairs_total", "") + `[5m])) > 0)`, "void"},
		query{`sum by (reason) (rate(` + fromComparison("pairs_void_total", "") + `[5m])) / on () group_left () (sum(rate(` + fromComparison("pairs_total", "") + `[5m])) > 0) > 0`, "{{reason}}"}).
		set(object{"min": 0}).custom(object{"axisSoftMax": 0.15, "thresholdsStyle": object{"mode": "dashed"}}).thresholds("transparent", step{0.1, "red"}).
		colored("^void$", orange).leadsTo("Replay health", "replayd-health")
}

func blockCorrelation() *panel {
	return timeseries("Block correlation", "none",
		"Correlation of the values of neighboring blocks, the median of stretches of 50 blocks, averaged over shards. Evidence needs one near 0. Clearly above 0.2 from 100 blocks on: no verdict (dependent); take longer blocks (min_time).",
		"ReplaydCandidateWorse",
		query{`avg by (metric) (` + fromComparison("block_correlation", "") + ` >= -1)`, "{{metric}}"}). // a shard below 50 blocks has NaN
		custom(object{"axisSoftMin": -0.5, "axisSoftMax": 0.5, "fillOpacity": 0, "thresholdsStyle": object{"mode": "dashed"}}).
		set(object{"decimals": 1}).thresholds("transparent", step{0.2, "red"}).metricColors().needs("after 50 blocks")
}
