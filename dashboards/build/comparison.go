package main

import "fmt"

// compares selects the chosen comparison. Its shards are processes with the same name of the comparison.
const compares = here + `,comparison=~"$comparison"`

// comparison shows the verdict about a candidate, and why, for both modes: what one mode lacks says so in its panels.
func comparison() *board {
	of := func(name, title, label string) object {
		return choice(name, title, `label_values(replayd_comparison_info{`+compares+`}, `+label+`)`)
	}
	b := newBoard("replayd-comparison", "replayd / Comparison",
		"Is the candidate worse than the baseline (mode verdict), or has it changed (mode watch)? Both get the same rows at the same instants. The chance that a verdict is wrong is bounded, however often one looks.",
		comparisonMarks(), datasource(), cluster(), namespace(),
		choice("comparison", "Comparison", `label_values(replayd_comparison_info{`+here+`}, comparison)`),
		of("workload", "Workload", "workload"), of("baseline", "Baseline", "baseline"), of("candidate", "Candidate", "candidate"))
	b.Links = append(b.Links, object{
		"type": "link", "title": "Canary of the candidate",
		"url":         "/d/replayd-canary?${datasource:queryparam}&${cluster:queryparam}&${namespace:queryparam}&var-workload=${workload}@${candidate}&var-target=${candidate}",
		"includeVars": false, "keepTime": true, "targetBlank": false, "icon": "dashboard",
	})
	b.put(6, 5, verdictNow(), why())
	b.put(3, 5, sinceEpoch(), perMinute(), blocksNeeded(), voidNow())

	b.row("Latencies: the candidate ÷ the baseline")
	b.put(8, 8, ratioOf("ttft", "TTFT ratio"), ratioOf("tpot", "TPOT ratio"), ratioOf("e2e", "E2e ratio"))

	b.row("Shares of requests: the candidate − the baseline")
	b.put(8, 7,
		excessOf("tail", "Excess of slow requests", "Requests that are much slower than the median pair of their block, as a share of the candidate's requests − the share of the baseline's. Above 0: some requests of the candidate are slow while its median is not: look for preemption, a slow replica or a noisy neighbor."),
		excessOf("queued", "Excess of queued requests", "Requests that were sent while an earlier one had no first token, as a share of the candidate's requests − the share of the baseline's. Above 0: the candidate is nearer to its limit of load."),
		excessOf("bad", "Excess of bad requests", "Requests that failed, found no lane or missed the SLO, as a share of the candidate's requests − the share of the baseline's. Above 0: open Canary of the candidate, Requests by outcome."))

	b.row("Evidence (mode verdict) and changes (mode watch)")
	b.put(8, 8, evidenceWorse(), evidenceNotWorse(), changedMetrics())

	b.row("Answers, which are not judged")
	b.put(12, 7, answerLength(), answerEnds())

	b.row("Is there evidence at all?")
	b.put(6, 7, pairsAndBlocks(), skippedBlocks(), voidPairs(), blockCorrelation())
	return b.restNeeds("No pair of this comparison in this time.")
}

// fromComparison is a series of the chosen comparison. with is empty or has further matchers.
func fromComparison(name, with string) string {
	return fmt.Sprintf(`replayd_comparison_%s{%s%s}`, name, compares, with)
}

// averageEvidence is that of all shards, by metric: they share the servers, so it is never multiplied. 10^200 is far below the largest number.
func averageEvidence(about string) string {
	return `log10(avg by (metric) (10 ^ clamp_max(` + fromComparison("evidence_log10", `,for="`+about+`"`) + `, 200)))`
}

func evidenceNeeded(about string) string {
	return `max(` + fromComparison("evidence_needed_log10", `,for="`+about+`"`) + `)`
}

// decisive is the average evidence of the metrics that can fail: a share of requests needs an excess above its tolerance.
func decisive() string {
	return `(` + averageEvidence("worse") + ` unless on (metric) avg by (metric) (` + fromComparison("excess_ratio", "") + `) <= max by (metric) (` +
		fromComparison("tolerance_ratio", "") + `))`
}

// failed is 1 where all shards say fail, or one does and the average of their evidence suffices, as in ReplaydCandidateWorse.
func failed() string {
	fails := fromComparison("verdict", `,verdict="fail"`)
	return `(min(` + fails + `) == 1 or on () (max(` + fails + `) == 1 and on () max(` + decisive() + `) >= on () ` + evidenceNeeded("worse") + `))`
}

// passed is 1 where all shards say pass.
func passed() string { return `(min(` + fromComparison("verdict", `,verdict="pass"`) + `) == 1)` }

// blind is 1 where one shard sees nothing of latencies.
func blind() string { return `max(` + fromComparison("blind", "") + `) == 1` }

func verdictNow() *panel {
	changed := func(directions string) string {
		return `max(` + fromComparison("changed", `,direction=~"`+directions+`"`) + `) == 1`
	}
	p := stat("Verdict", "short",
		"Fail: the candidate is worse by more than a tolerance; it stays until the evidence begins anew. Pass: no latency of requests that met no queue is longer by more than the tolerance, as a median; it can still become a fail. Blind: nothing is seen of latencies. All on the condition that equal servers wander by no more than the configured wander. With several shards all must agree, or the average of their evidence must suffice. Mode watch has no verdict: no change proven, better or worse.",
		"ReplaydCandidateWorse",
		query{`2 * ` + failed() + ` or on () ` + passed() + ` or on () 0 * group(` + fromComparison("verdict", "") + `)`, ""},
		query{`5 * (` + changed("slower|more") + `) or on () 4 * (` + changed("faster|fewer") + `)
  or on () 6 * (` + blind() + ` and on () group(` + fromComparison("info", `,mode="watch"`) + `))
  or on () 3 * group(` + fromComparison("changed", "") + `)`, ""}).
		word("0", "undecided", "orange").word("1", "pass", "green").word("2", "fail", "red").
		word("3", "no change", "green").word("4", "better", "blue").word("5", "worse", "red").word("6", "blind", "orange").thresholds("text")
	return p.option(object{"colorMode": "background", "textMode": "value", "justifyMode": "center", "text": object{"valueSize": 32}}).empty("no comparison")
}

// skipped is the most frequent reason why blocks gave no latencies, where none of 15 minutes gave any. A comparison
// says that it is blind after four times the usual time of a block, which is long where few blocks counted before.
func skipped() string {
	useful := `sum(increase(` + fromComparison("blocks_total", `,metric="e2e"`) + `[15m])) > 0`
	return `(topk(1, sum by (reason) (increase(` + fromComparison("blocks_skipped_total", "") + `[15m])) > 0)
  unless on () (` + useful + `))`
}

// reasons are the words of each reason why there is no verdict, and of why blocks are skipped.
var reasons = [][2]string{
	{"queues", "blind: queues"},
	{"few_calm", "blind: too few answers"},
	{"void", "blind: too many void pairs"},
	{"no_values", "blind: no answers"},
	{"no_data", "no data yet"},
	{"few_blocks", "more blocks are needed"},
	{"few_pairs", "more pairs are needed"},
	{"excess", "a share is above its tolerance"},
	{"dependent", "blocks are too much alike"},
	{"wander", "the tolerance is below the wander"},
	{"changed", "the ratio has changed"},
	{"few_pods", "three pods a side are needed"},
	{"pods_changed", "a pod was replaced or restarted"},
	{"next_look", "no look at the pods decides yet"},
	{"pods", "for the version"},
	{"skipped: void", "blocks are skipped: too many void pairs"},
	{"skipped: few_calm", "blocks are skipped: too few answers"},
	{"skipped: no_values", "blocks are skipped: no answers"},
}

func why() *panel {
	waits := `max by (reason) (` + fromComparison("undecided", `,reason="few_blocks"`) + `) == 1`
	unchanged := `max(` + fromComparison("changed", "") + `) == 0`
	p := stat("Why", "short",
		"Mode verdict: the metrics with enough evidence for a fail, or the reason why there is no verdict; for the version: it holds for the version of the pods. Mode watch: the metrics that have changed. Blind: nothing is seen of latencies; with queues: lower the load (speed). Blocks are skipped: no block of 15 minutes had latencies; with void pairs: open Replay health. Blocks too much alike: take longer blocks (min_time). docs/reference/metrics.md explains each reason.",
		"ReplaydCandidateWorse",
		query{`(max by (reason) (` + fromComparison("undecided", `,reason!="few_blocks"`) + `) == 1
  or max by (reason) (` + fromComparison("blind", "") + `) == 1
  or (` + waits + ` unless on () ` + skipped() + `)) unless on () ` + failed(), "{{reason}}"},
		query{skipped() + ` and on () (` + waits + ` or ` + unchanged + `)
  unless on () (` + failed() + ` or ` + blind() + `)`, "skipped: {{reason}}"},
		query{decisive() + ` >= on () group_left () ` + evidenceNeeded("worse") + ` and on () ` + failed(), "{{metric}} worse"},
		query{passed(), "no latency is longer"},
		query{`max by (scope) (` + fromComparison("scope", `,scope="pods"`) + `) == 1 and on () group(` + fromComparison("verdict", `,verdict=~"fail|pass"`) + ` == 1)`, "{{scope}}"},
		query{`max by (metric, direction) (` + fromComparison("changed", "") + `) == 1`, "{{metric}} {{direction}}"},
		query{unchanged + ` unless on () (` + blind() + ` or ` + skipped() + `)`, "no change proven"}).thresholds("text")
	for _, r := range reasons {
		p.override("^"+r[0]+"$", "displayName", r[1])
	}
	return p.option(object{"textMode": "name", "justifyMode": "center", "orientation": "horizontal", "text": object{"titleSize": 20}})
}

func sinceEpoch() *panel {
	return stat("Epoch age", "dthms",
		"Time since the evidence began: no earlier request counts. A new epoch begins with POST /-/comparisons/NAME/restart, with another model of a side, and with a reload that changes a side.",
		"How to read this", query{`time() - max(` + fromComparison("epoch_timestamp_seconds", "") + `)`, ""}).thresholds("text").set(object{"decimals": 0})
}

func perMinute() *panel {
	p := stat("Each minute", "short",
		"Pairs of requests that were judged, and blocks with latencies, a minute, over 5 minutes. Evidence grows by blocks. No block with latencies for 15 minutes: an alert fires.",
		"ReplaydComparisonBlind",
		query{`60 * sum(rate(` + fromComparison("pairs_total", `,result="judged"`) + `[5m]))`, "pairs"},
		query{`60 * sum(rate(` + fromComparison("blocks_total", `,metric="e2e"`) + `[5m]))`, "blocks"})
	return now(p).set(object{"decimals": 1})
}

func blocksNeeded() *panel {
	needed := `max(` + fromComparison("blocks_needed", "") + `)`
	return stat("Blocks left", "short",
		"How many more blocks decide, if they are like those so far; of several shards the most. No number decides: the candidate is too near to the tolerance, or there are no blocks. Mode watch never ends.",
		"How to read this", query{needed + ` < Inf or on () -1 * (` + needed + ` == bool Inf)`, ""}).
		thresholds("text").word("-1", "no number decides", "orange").word("0", "decided", "text").set(object{"decimals": 0}).empty("only in mode verdict")
}

func voidNow() *panel {
	return stat("Void pairs", "percentunit",
		"Pairs that say nothing, because replayd itself was late, paused or out of budget, as a share of all pairs of 15 minutes. A block with over 10 % of them is skipped. Red: open Replay health.",
		"ReplaydComparisonBlind",
		query{`sum(increase(` + fromComparison("pairs_total", `,result="void"`) + `[15m])) / (sum(increase(` + fromComparison("pairs_total", "") + `[15m])) > 0)`, ""}).
		set(object{"decimals": 1}).thresholds(green, step{0.05, "yellow"}, step{0.1, "red"}).leadsTo("Replay health", "replayd-health")
}

// comparisonMarks mark what begins or ends evidence.
func comparisonMarks() []object {
	by := `by (cluster, namespace, comparison`
	return []object{
		mark("Verdicts", "purple", `max `+by+`, verdict) (`+fromComparison("verdict", "")+`) == 1
  and max `+by+`, verdict) (`+changed(fromComparison("verdict", ""))+`)`, "Verdict: {{verdict}}", "{{comparison}}"),
		mark("Changes", "orange", `max `+by+`, metric, direction) (`+changed(fromComparison("changes_total", ""))+`)`,
			"Change: {{metric}} {{direction}}", "{{comparison}}"),
		mark("Epochs", "blue", `max `+by+`) (`+changed(fromComparison("epoch_timestamp_seconds", ""))+`)`,
			"The evidence begins anew", "{{comparison}}"),
		mark("Engine restarts", "red", `max by (cluster, namespace, target, address) (`+changed(`replayd_engine_restarts_total{`+here+`,target=~"$baseline|$candidate"}`)+`)`,
			"The engine restarted", "{{target}} {{address}}"),
	}
}
