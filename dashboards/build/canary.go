package main

import (
	"fmt"
	"slices"
)

// canary shows whether the service is good for its users, now and compared with the same place of the trace earlier.
func canary() *board {
	b := newBoard("replayd-canary", "replayd / Canary",
		"Is the service good for its users, now and compared with the same place of the trace a loop, a day or a week before? The first row answers; the rest shows the start and the kind of a problem. Its bounds are constants: whether a new version is worse is for Comparison, which has a verdict.",
		annotations(), datasource(), cluster(), namespace(), workload(""), targetOf(`,workload=~"$workload"`), model(), before())
	b.put(4, 4, nowGood(), nowBurn(), nowSLO("TTFT", "ttft"), nowSLO("TPOT", "tpot"), nowErrors(), nowMeasured())

	b.row("Latency")
	b.put(6, 8,
		latency("Time to first token (TTFT)", "ttft", "From the first byte of the request to the first content chunk, of ok requests. A request above the red line misses the SLO. If TTFT is up and the pale line is not, open Correlation: queue, prefix cache and clocks show the cause.", "ReplaydTTFTRegression", slo("ttft")),
		latency("Time to first answer token (TTFAT)", "ttfat", "From the first byte of the request to the first chunk of the answer itself, text or a tool call, of ok requests. It equals TTFT for a model that does not reason; an answer of reasoning alone has none. TTFAT up and TTFT not: the reasoning is longer (see Output tokens), or TPOT is up.", "ReplaydSLOBurnFast", slo("ttfat")),
		latency("TTFT from due", "ttft_from_due", "The wait of a user of the real system: it includes lateness, lane wait and stalls of the server. Far above TTFT: replayd has no free lanes or is late, and TTFT alone looks too good.", "ReplaydOverload", slo("ttft")),
		latency("End-to-end latency (e2e)", "e2e", "From the first byte of the request to the last content chunk, of ok requests. Long answers take longer: compare with the pale line, not with another trace.",
			"ReplaydSLOBurnSlow", slo("e2e")),
	)
	b.put(8, 8,
		latency("Time per output token (TPOT)", "tpot", "For each request: (last chunk − first chunk) ÷ (output tokens − 1). If TPOT is up and TTFT is not, the batch is larger or the GPU is slower: see batch, clocks and throttling in Correlation.",
			"ReplaydTPOTRegression", slo("tpot")),
		latency("Inter-token latency (ITL)", "itl", "Time between content chunks, which a reader sees as stutter. A chunk can hold several tokens. Only p99 up: prefills interrupt the decode steps, or a proxy buffers chunks.",
			"ReplaydTPOTRegression"),
		slower(),
	)

	b.row("Outcomes")
	b.put(8, 8, goodOverTime(), whyNotGood(), outcomes())

	b.collapsedRow("Sessions: conversations, and runs of agents")
	b.put(6, 8, sessionPanels()...)

	b.row("Load: the same work as before?")
	b.put(8, 8, expectedAndFinished(), tokens("output", "Output tokens", "Output tokens of ok requests, counted when they end. Reasoning tokens are part of the output. Below the pale line with the same number of requests: answers are shorter than the trace asks for, or requests fail.", "reasoning"),
		tokens("prompt", "Prompt tokens", "Prompt tokens of ok requests, counted when they end. Cached tokens were found in the engine's prefix cache, if the engine reports them. Fewer cached tokens for the same prompts: the cache has lost them, and TTFT rises.", "cached"),
		placeInTrace(), atOnce(), otherLength())
	return b.restNeeds("No request of this workload ended ok in this time.")
}

// share is the service attainment, good ÷ eligible. As in workload:replayd_bad_requests:ratio_rate5m, it has no value
// if no request was eligible. It is capped at 1, because the two rates are extrapolated separately.
func share(offset string) string {
	sum := func(name string) string {
		return fmt.Sprintf(`sum(rate(replayd_%s_total{%s}[5m]%s))`, name, of, offset)
	}
	return fmt.Sprintf(`clamp_max(%s / (%s > 0), 1)`, sum("goodput_requests"), sum("requests_eligible"))
}

// objective is the share of requests that should be good.
const objective = `max(replayd_slo_objective_ratio{` + of + `})`

// now is a figure, green within a bound and red beyond it, and the bound. Grafana's thresholds take no query, so the figure is up to three
// queries of which one answers, and each has its color.
func now(p *panel) *panel {
	p.option(object{"textMode": "value_and_name", "justifyMode": "center", "text": object{"titleSize": 12, "valueSize": 17}})
	return p.thresholds("text")
}

func nowGood() *panel {
	return now(stat("Service attainment", "percentunit",
		"Good ÷ eligible requests of the last 5 minutes, next to the objective. A good request ended ok and met every bound of the SLO. Requests that failed or found no lane are eligible. Requests that replayd itself held back are not. Red: below the objective (slo.objective); check which bound is missed, and since when. No data: no request was eligible.", "ReplaydSLOBurnFast",
		query{share("") + ` >= on() ` + objective, "attainment"}, query{share("") + ` < on() ` + objective, "attainment"},
		query{objective, "objective"})).set(object{"decimals": 1}).coloredQuery("A", "green").coloredQuery("B", "red")
}

func nowBurn() *panel {
	burn := func(window string) string {
		return `max(workload:replayd_bad_requests:ratio_rate` + window + `{` + of + `}) / on() (1 - ` + objective + `)`
	}
	p := stat("Budget burn", "suffix:×",
		"Burn rate of the error budget (1 − objective). At 1 the budget lasts exactly 30 days. At 14.4 an hour uses 2 % of it. Both red: act now. Only 5 min red: it has just begun, or it was short.", "ReplaydSLOBurnFast",
		query{`(1 - ` + share("") + `) / on() (1 - ` + objective + `)`, "5 min"}, query{burn("1h"), "1 h"})
	return now(p).set(object{"decimals": 1}).thresholds("green", step{1, "yellow"}, step{6, "orange"}, step{14.4, "red"})
}

func nowSLO(short, name string) *panel {
	figure := quantileOver("5m", 0.9, name)
	bound := slo(name)
	return now(stat(short+" p90", "s",
		"p90 of "+short+" of the ok requests of the last 5 minutes, next to the bound of the SLO. Red: more than one in ten exceed it. Blue: no bound is configured. The graph below shows since when; Correlation shows the cause.", "Replayd"+short+"Regression",
		query{figure + ` <= on() ` + bound.expr, "p90"}, query{figure + ` > on() ` + bound.expr, "p90"},
		query{figure + ` unless on() ` + bound.expr, "p90"}, bound)).coloredQuery("A", "green").coloredQuery("B", "red").coloredQuery("C", "blue")
}

func nowErrors() *panel {
	p := stat("Failures", "percentunit",
		"The two most frequent failures, as a fraction of the requests that ended in the last 5 minutes. 0: none failed. No data: none ended. docs/reference/metrics.md explains each outcome. Red: check the target's log; the records file has the server's error texts.", "ReplaydErrorRatio",
		query{`topk(2, sum by (outcome) (rate(replayd_requests_total{` + of + `,outcome!~"ok|aborted|cancelled"}[5m])) / on() group_left () (sum(rate(replayd_requests_total{` + of + `,outcome!~"aborted|cancelled"}[5m])) > 0) > 0)
  or on() label_replace(0 * (sum(rate(replayd_requests_total{` + of + `,outcome!~"aborted|cancelled"}[5m])) > 0), "outcome", "nothing", "", "")`, "{{outcome}}"})
	now(p).set(object{"decimals": 1})
	return p.thresholds("green", step{1e-9, "yellow"}, step{0.01, "orange"}, step{0.05, "red"})
}

func nowMeasured() *panel {
	p := stat("Measurement", "s",
		"Can the figures be trusted? Mean lateness of replayd itself over 5 minutes, and the fraction of requests that it held back or missed. Requests without a lane are not included: the service was too slow for them. Red: the load is not the trace's, so this page says less about the service. Open Replay health (link of this panel).", "ReplaydLate",
		query{ownLateness(of, "5m"), "late"},
		query{`sum(rate(replayd_requests_dropped_total{` + of + `,reason!~"filtered|overload"}[5m])) / (sum(rate(replayd_requests_expected_total{` + of + `}[5m])) > 0)`, "not sent"})
	now(p).thresholds("green", step{0.005, "yellow"}, step{0.05, "red"})
	p.override("^late$", "decimals", 0).override("^not sent$", "unit", "percentunit", "decimals", 1, "thresholds",
		object{"mode": "absolute", "steps": []object{{"color": "green", "value": nil}, {"color": "yellow", "value": 1e-9}, {"color": "red", "value": 0.01}}})
	return p.leadsTo("Replay health", "replayd-health")
}

// latency plots the quantiles of a client's histogram, its bound, and the earlier p90 at the same place of the trace.
func latency(title, name, description, section string, bound ...query) *panel {
	p := timeseries(title, "s", description+" Pale: p90 at the same place of the trace "+then+".", section, append(quantiles(name), bound...)...)
	if slices.Contains(withExemplars, name) {
		p.exemplarsOf("p99")
	}
	return p.leadsTo("Correlation", "replayd-correlation").
		set(object{"min": 0}).custom(object{"fillOpacity": 0}).quantileColors().redSLO().paleBefore()
}

// withExemplars lists the histograms with exemplars, whose ids are X-Request-Ids.
var withExemplars = []string{"ttft", "ttfat", "ttft_from_due", "e2e"}

// then is the chosen earlier time, in words.
const then = "${before:text}"

func slower() *panel {
	ratio := func(name string) string {
		return quantileOver("5m", 0.9, name) + ` / on() (` + quantileAt("5m", 0.9, name, ago) + ` > 0)`
	}
	return timeseries("p90 now ÷ p90 before", "suffix:×",
		"p90 over 5 minutes ÷ p90 at the same place of the trace "+then+". The requests are the same, so 1 means no change. Above 1.5 for some time, an alert fires: look for a release, a new neighbor or a colder cache. 1.5 is a constant, and the load of other clients may differ: for a verdict, send the rows to two servers at once (Comparison). The axis ends at 5. Only the gray line: there are no figures from that time yet.", "ReplaydTTFTRegression",
		query{ratio("ttft"), "TTFT"}, query{ratio("tpot"), "TPOT"}, query{ratio("e2e"), "e2e"}, query{`vector(1)`, "as before"}).
		set(object{"min": 0, "max": 5}).custom(object{"axisSoftMax": 2, "fillOpacity": 0, "thresholdsStyle": object{"mode": "dashed"}}).thresholds("transparent", step{1.5, "red"}).
		colored("^TTFT$", blue).colored("^TPOT$", orange).colored("^e2e$", purple).
		colored("^as before$", pale).leadsTo("Comparison", "replayd-comparison")
}

func goodOverTime() *panel {
	queries := append(compared(share, "attainment"), query{objective, "objective"})
	return timeseries("Service attainment and objective", "percentunit",
		"Good ÷ eligible requests over 5 minutes. Failed requests and requests without a lane are eligible, although no latency shows them. Below the red line the error budget burns. Pale: at the same place of the trace "+then+".",
		"ReplaydSLOBurnFast", queries...).
		set(object{"max": 1}).custom(object{"axisSoftMin": 0.95, "fillOpacity": 0}).colored("^attainment$", blue).paleBefore().
		dashed("^objective$", "red")
}

func whyNotGood() *panel {
	return timeseries("SLO violations by bound", "percentunit",
		"Fraction of the finished requests that missed each bound of the SLO, over 5 minutes. A request can miss several bounds. A failed request only counts as error. Where to look: ttft: queue and prefill; tpot: decode; error: the outcomes.", "ReplaydSLOBurnSlow",
		query{`sum by (slo) (rate(replayd_slo_violations_total{` + of + `}[5m])) / on() group_left () (sum(rate(replayd_requests_total{` + of + `}[5m])) > 0)`, "{{slo}}"}).
		set(object{"min": 0}).custom(object{"axisSoftMax": 0.05}).
		colored("^ttft$", blue).colored("^tpot$", orange).colored("^e2e$", purple).colored("^error$", "red")
}

func outcomes() *panel {
	// Sixteen outcomes are there at 0 always: those that were none in the whole range only lengthen the legend.
	return timeseries("Requests by outcome", "reqps",
		"Finished requests by outcome. Outcomes that did not occur in the time range are left out. Only green is good. docs/reference/metrics.md explains each outcome; the records file has the server's error texts.",
		"ReplaydErrorRatio",
		query{`sum by (outcome) (rate(replayd_requests_total{` + of + `}[$__rate_interval]))
  and on (outcome) (sum by (outcome) (increase(replayd_requests_total{` + of + `}[$__range] @ end())) > 0 or sum by (outcome) (replayd_requests_total{` + of + `,outcome="ok"}))`, "{{outcome}}"}).
		set(object{"min": 0}).stacked().
		outcomeColors()
}

func expectedAndFinished() *panel {
	return timeseries("Requests expected, finished and not sent", "reqps",
		"Requests that fell due, that ended, and that were never sent. Finished follows expected after the duration of a request. If it stays below, the service does not keep up, or replayd has no free lanes.",
		"ReplaydOverload",
		query{`sum(rate(replayd_requests_expected_total{` + of + `}[$__rate_interval]))`, "expected"},
		query{`sum(rate(replayd_requests_total{` + of + `}[$__rate_interval]))`, "finished"},
		query{`sum(rate(replayd_requests_dropped_total{` + of + `,reason!="filtered"}[$__rate_interval]))`, "not sent"}).
		set(object{"min": 0}).colored("^expected$", blue).colored("^finished$", green).colored("^not sent$", "orange")
}

func tokens(kind, title, description, part string) *panel {
	rate := func(kind string) func(string) string {
		return func(offset string) string {
			return fmt.Sprintf(`sum(rate(replayd_tokens_total{%s,kind="%s"}[$__rate_interval]%s))`, of, kind, offset)
		}
	}
	return timeseries(title, "si:tok/s", description, "ReplaydOutputShort",
		append(compared(rate(kind), kind), query{rate(part)(""), part})...).
		set(object{"min": 0}).colored("^"+kind+"$", blue).colored("^"+part+"$", green).paleBefore()
}

func placeInTrace() *panel {
	return timeseries("Position in the trace", "dthms",
		"The trace time that is played, from 0 to the end of each loop. Dashed: the duration of a loop. If the pale line lies under the other line, now and before are the same place of the trace. If it does not, or if the line is flat, do not compare: open Replay health.", "How to read this",
		append(compared(func(offset string) string { return `max(replayd_position_seconds{` + of + `}` + offset + `)` }, "position"),
			query{`max(replayd_loop_duration_seconds{` + of + `})`, "loop"})...).
		set(object{"min": 0}).colored("^position$", blue).paleBefore().
		dashed("^loop$", "text")
}

func atOnce() *panel {
	return timeseries("Requests in flight and waiting", "short",
		"In flight: sent and not finished. Waiting: due, and waiting for a lane or for the previous turn. Above the pale line: the service takes longer for the same work.",
		"ReplaydOverload",
		append(compared(func(offset string) string { return `sum(replayd_requests_in_flight{` + of + `}` + offset + `)` }, "in flight"),
			query{`sum(replayd_requests_waiting{` + of + `})`, "waiting in replayd"})...).
		set(object{"min": 0, "decimals": 0}).colored("^in flight$", blue).colored("^waiting in replayd$", orange).paleBefore()
}

func otherLength() *panel {
	return timeseries("Output length mismatches", "percentunit",
		"Fraction of the ok answers whose usage differs from the lengths in the trace. Output above 0: the engine stops early (context length, stop word, ignore_eos not supported), so TPOT and e2e are for less work. Prompt: the chat template is not measured yet.",
		"ReplaydOutputShort",
		query{`sum by (kind) (rate(replayd_length_mismatch_total{` + of + `}[5m])) / on() group_left () (sum(rate(replayd_requests_total{` + of + `,outcome="ok"}[5m])) > 0)`, "{{kind}}"}).
		set(object{"min": 0}).custom(object{"axisSoftMax": 0.05}).colored("^output$", blue).colored("^prompt$", orange)
}
