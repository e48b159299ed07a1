package main

import "fmt"

// inFleet selects what was chosen, which is everything at first.
// So it selects recorded series, or gauges with few series.
const inFleet = of

const (
	// The legend of a workload, the same everywhere: a series has its color by its name.
	workloadName = "{{cluster}} {{namespace}} {{workload}} on {{target}} {{model}}"

	byWorkload = `by (workload, target, model, cluster, namespace)`
	byTarget   = `by (target, cluster, namespace)`
	badNow     = `workload:replayd_bad_requests:ratio_rate5m{` + inFleet + `}`
	badHour    = `workload:replayd_bad_requests:ratio_rate1h{` + inFleet + `}`
	mayBeBad   = `(1 - workload:replayd_slo_objective_ratio:max{` + inFleet + `})`
	dueNow     = `workload:replayd_requests_expected:rate5m{` + inFleet + `}`

	// Alerts on a process have no workload and no target; alerts on a target have no workload.
	alarms = `ALERTS{alertname=~"Replayd.*",alertstate="firing",` + here + `,workload=~"$workload|",target=~"$target|"}`

	// Workloads that existed within a day and do not now, as in
	// ReplaydGone. A workload that plays once is in loop 0 and may end.
	gone = `(group ` + byWorkload + ` (last_over_time(workload:replayd_loop:max{` + inFleet + `}[1d]) > 0) unless group ` + byWorkload + ` (` + dueNow + `))`

	// A shard is present if any process has its index. Two scrapes of one process count once.
	shardsOf      = `max ` + byWorkload + ` (replayd_shards{` + inFleet + `})`
	shardsThere   = `count ` + byWorkload + ` (count_values ` + byWorkload + ` ("index", replayd_shard_index{` + inFleet + `}))`
	shardsMissing = `sum(clamp_min(` + shardsOf + ` - ` + shardsThere + `, 0))`

	// 0: not held back, 1: by the guard, 2: paused.
	heldBack = `clamp_max(max ` + byWorkload + ` (replayd_guard_open{` + inFleet + `}) + 2 * max ` + byWorkload + ` (replayd_paused{` + inFleet + `}), 2)`

	enginesUp = `max by (target, address, cluster, namespace) (replayd_engine_up{` + onTarget + `})`
)

// fleet has a row for each workload of each target, the worst first, with links to the other dashboards.
func fleet() *board {
	var marks []object
	for _, a := range annotations() {
		if a["name"] != "Loops" && a["name"] != "Guard" { // of so many workloads, one always begins a loop or is held back
			marks = append(marks, a)
		}
	}
	b := newBoard("replayd-fleet", "replayd / Fleet",
		"All targets, models and shards, worst first. Click a name to open its Canary, Correlation or Replay health.",
		marks, datasource(), cluster(), namespace(),
		choices("workload", "Workload", `label_values(replayd_requests_expected_total{`+here+`}, workload)`),
		choices("target", "Target", `label_values(replayd_requests_expected_total{`+here+`,workload=~"$workload"}, target)`), model())
	b.linksWith("datasource", "cluster", "namespace")

	b.row("Now")
	now := []*panel{
		stat("Workloads", "short", "Workloads that replayd plays. The shards of a workload count once. Fewer than expected: a replayd is gone, or a reload removed them.",
			"ReplaydDown", query{`count(` + dueNow + `)`, ""}).thresholds("text").empty("none"),
		stat("Gone", "short", "Workloads that were replayed within the last day and are not replayed now. They are at the top of the table. After a removal on purpose, they disappear after a day.",
			"ReplaydGone", query{`count(` + gone + `) or 0 * count(` + dueNow + `)`, ""}).thresholds("green", step{1, "red"}),
		stat("Bad now", "short", "Workloads with more bad requests over 5 minutes than their objective allows. They are at the top of the table.",
			"ReplaydSLOBurnFast", query{`count(` + badNow + ` > ` + mayBeBad + `) or 0 * count(` + badNow + `)`, ""}).thresholds("green", step{1, "red"}),
		stat("Alerts firing", "short", "Firing alerts of replayd's rules for the current selection, and on processes. Their names are below.",
			"How to read this", query{`count(` + alarms + `) or 0 * count(` + dueNow + `)`, ""}).thresholds("green", step{1, "red"}),
		stat("Engines down", "short", "Replicas whose metrics page cannot be scraped, or is of no known engine. They may still serve requests: check the bad requests. The engine table below has their names.",
			"ReplaydEngineUnseen", query{down(enginesUp), ""}).thresholds("green", step{1, "red"}),
		stat("Shards missing", "short", "Shards without a process. Their requests are not sent: only a part of the load is measured.",
			"ReplaydShardMissing", query{shardsMissing, ""}).thresholds("green", step{1, "red"}),
		stat("Held back", "short", "Workloads that are paused, or whose guard is open because the target is overloaded or its metrics are missing. If it lasts, the canary only measures quiet moments.",
			"ReplaydGuardOpen", query{`count(` + heldBack + ` > 0) or 0 * count(` + heldBack + `)`, ""}).thresholds("green", step{1, "orange"}),
	}
	b.put(6, 3, now[:4]...)
	b.put(8, 3, now[4:]...)
	b.row("By workload")
	b.put(24, 10, workloadTable())
	b.row("Over time")
	b.put(12, 8,
		timeseries("Bad requests: the ten worst workloads", "percentunit",
			"Fraction of bad requests over 5 minutes, of the ten workloads with the highest average in the time range. One workload alone has its own problem; several at once share a cluster, a release or a network.",
			"ReplaydSLOBurnFast",
			query{badNow + ` and topk(10, avg_over_time(` + badNow + `[$__range] @ end()))`, workloadName}).
			set(object{"min": 0}).custom(object{"axisSoftMax": 0.05, "fillOpacity": 0}),
		timeseries("Firing alerts by name", "short",
			"Firing alerts of replayd's rules. Critical: act now. Warning: act today. The runbook has a section for each. While an alert on the measurement fires, the others may be wrong.",
			"How to read this",
			query{`count by (severity, alertname) (` + alarms + `)`, "{{severity}}: {{alertname}}"}, query{`0 * count(` + dueNow + `) unless on () ` + alarms, "none"}).
			set(object{"min": 0, "decimals": 0}).custom(object{"axisSoftMax": 1, "lineInterpolation": "stepAfter"}).stacked().line("none").
			colored("/^critical:/", "red").colored("/^warning:/", "orange").colored("/^info:/", "blue").colored("^none$", "text"),
		timeseries("Requests expected by target", "reqps",
			"Requests per second that the traces ask for, stacked by target. A hole: a replayd or a shard is gone. An unexpected step: a reload, or a changed trace.",
			"ReplaydDown", query{`sum by (cluster, namespace, target) (` + dueNow + `)`, "{{cluster}} {{namespace}} {{target}}"}).
			set(object{"min": 0}).stacked(),
		timeseries("Shards expected and running", "short",
			"Shards of all workloads that should run and that run, and the missing ones by workload. If they differ for longer than a rollout, check the pods of the shards.",
			"ReplaydShardMissing",
			query{`sum(` + shardsOf + `)`, "should be"}, query{`sum(` + shardsThere + `)`, "there"},
			query{shardsOf + ` - ` + shardsThere + ` > 0`, "missing of {{workload}} on {{target}}"}).
			set(object{"min": 0, "decimals": 0}).dashed("^should be$", "text").colored("^there$", green).
			override("/^missing/", "custom.fillOpacity", 40),
	)
	b.row("By engine")
	b.put(24, 9, engineTable())
	return b.restNeeds("No workload of this selection in this time.")
}

// toWorkloads joins a value of a target to each of its workloads, so that their rows show it.
func toWorkloads(target string) string {
	return fmt.Sprintf(`0 * max %s (%s) + on (cluster, namespace, target) group_left () (%s)`, byWorkload, dueNow, target)
}

// state is the first sort key of a row. A workload that is gone or held back has no bad requests, but is not well.
func state() string {
	worst := `5 * ` + gone
	for i, s := range []string{badNow + ` > ` + mayBeBad, shardsOf + ` - ` + shardsThere + ` > 0`, heldBack + ` > 0`, dueNow + ` unless ` + badNow, dueNow} {
		worst += fmt.Sprintf(" or %d * group %s (%s)", 4-i, byWorkload, s)
	}
	return worst
}

func workloadTable() *panel {
	of := func(expr string) string { return `max ` + byWorkload + ` (` + expr + `)` }
	p90 := func(name string) string {
		return of(fmt.Sprintf(`workload:replayd_%s_seconds:quantile5m{%s,quantile="0.9"}`, name, inFleet))
	}
	ofSLO := func(name string) string {
		return fmt.Sprintf(`%s / min %s (replayd_slo_threshold_seconds{%s,slo="%s"})`, p90(name), byWorkload, inFleet, name)
	}
	dropped := fmt.Sprintf(`sum %s (workload_reason:replayd_requests_dropped:rate5m{%s,reason!="filtered"}) / (%s > 0)`, byWorkload, inFleet, of(dueNow))
	bad := []step{{0.01, "dark-orange"}, {0.1, "dark-red"}}
	return rows("Workloads, worst first",
		"A row is a workload on a target and model, summed over its shards. State: gone (within the last day), bad (below its objective), shards missing, held back, quiet (no request ended), ok. Bad: fraction of the eligible requests that found no lane, failed or missed the SLO. Burn: 1 uses the error budget in 30 days, 14 in two days. Late: mean lateness of replayd itself; the load is not the trace's. Missing: shards. Held: by the guard or a pause. Unseen: fraction of the engine's replicas without metrics. Begin with the first red row and click its name.",
		"How to read this", byWorkload, []column{
			{"state", state(), "none", "transparent", []step{{2, "dark-orange"}, {3, "dark-red"}}},
			{"bad 5m", of(badNow), "percentunit", "transparent", bad},
			{"burn 1h", of(badHour + ` / ` + mayBeBad), "none", "transparent", []step{{1, "dark-orange"}, {14.4, "dark-red"}}},
			{"missing", shardsOf + ` - ` + shardsThere, "none", "transparent", []step{{1, "dark-red"}}},
			{"held", heldBack, "none", "transparent", []step{{1, "dark-orange"}}},
			{"TTFT p90", p90("ttft"), "s", "", nil},
			{"TTFT/SLO", ofSLO("ttft"), "percentunit", "transparent", []step{{0.8, "dark-orange"}, {1, "dark-red"}}},
			{"TPOT p90", p90("tpot"), "s", "", nil},
			{"TPOT/SLO", ofSLO("tpot"), "percentunit", "transparent", []step{{0.8, "dark-orange"}, {1, "dark-red"}}},
			{"due/s", of(dueNow), "none", "", nil},
			{"dropped", dropped, "percentunit", "transparent", []step{{0.001, "dark-orange"}, {0.01, "dark-red"}}},
			{"late", of(`workload:replayd_own_lateness_seconds:mean5m{` + inFleet + `}`), "s", "transparent", []step{{0.005, "dark-orange"}, {0.05, "dark-red"}}},
			{"unseen", toWorkloads(`1 - avg ` + byTarget + ` (` + enginesUp + `)`), "percentunit", "transparent", []step{{0.001, "dark-orange"}}},
			{"tokens/J", toWorkloads(`max ` + byTarget + ` (target:replayd_generation_tokens_per_joule:ratio_rate5m{` + onTarget + `})`), "none", "", nil},
		}, object{"displayName": "state", "desc": true}, object{"displayName": "bad 5m", "desc": true}, object{"displayName": "burn 1h", "desc": true}).
		override("^state$", "mappings", words("ok", "quiet", "held", "shards", "bad", "gone")).
		override("^held$", "mappings", words("no", "guard", "paused")).
		override("^(burn 1h|due/s|tokens/J)$", "decimals", 2).
		override("^workload$", "links", []object{toBoard("canary"), toBoard("correlation"), toBoard("health")}).
		override("^target$", "links", []object{toBoard("correlation")}).
		override("^bad 5m$", "links", []object{toBoard("canary")}).
		override("^late$", "links", []object{toBoard("health")})
}

func engineTable() *panel {
	const by = `by (target, address, rank, cluster, namespace)`
	gauge := func(name string) string { return fmt.Sprintf(`max %s (replayd_engine_%s{%s})`, by, name, onTarget) }
	busy := []step{{0.8, "dark-orange"}, {0.95, "dark-red"}}
	return rows("Engines",
		"A row is a replica and rank of an engine. Waiting: requests in its queue. KV cache near 100 %: requests are queued or preempted. Restarts: in the last hour; check the engine's log. Down: its metrics page cannot be scraped, so its figures are unknown. Click the target's name to open Correlation.",
		"ReplaydEngineUnseen", by, []column{
			{"running", gauge("requests_running"), "none", "", nil},
			{"waiting", gauge("requests_waiting"), "none", "transparent", []step{{1, "dark-orange"}}},
			{"KV cache", gauge("kv_cache_usage_ratio"), "percentunit", "transparent", busy},
			{"restarts 1h", `max by (target, address, cluster, namespace) (` + risen(`replayd_engine_restarts_total{`+onTarget+`}`, "1h") + `)`, "none", "transparent", []step{{0.5, "dark-orange"}}},
			{"page", enginesUp, "none", "dark-red", []step{{1, "transparent"}}},
		}, object{"displayName": "page", "desc": false}, object{"displayName": "waiting", "desc": true}).
		override("^page$", "mappings", words("down", "up")).
		override("^restarts 1h$", "decimals", 0).
		override("^target$", "links", []object{toBoard("correlation")})
}
