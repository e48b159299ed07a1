package main

import (
	"fmt"
	"slices"
)

// canary shows whether the service is good for its users, now and compared with the same place of the trace earlier.
func canary() *board {
	b := newBoard("replayd-canary", "replayd / Canary",
		"Is the service good for its users, now and against the same place of the trace one loop, day or week before? Read the first line; the rest says since when and of what kind.",
		annotations(), datasource(), cluster(), namespace(), workload(""), targetOf(`,workload=~"$workload"`), model(), kind(), before())
	b.put(4, 4, nowGood(), nowBurn(), nowSLO("TTFT", "ttft"), nowSLO("TPOT", "tpot"), nowErrors(), nowMeasured())

	b.row("Latency")
	b.put(8, 8,
		latency("Time to first token (TTFT)", "ttft", "From the first byte of the request to the first chunk with content, of ok requests. A request over the red line misses the SLO. "+
			"When it is up and the pale line is not, open Correlation: queue, prefix cache and clocks tell whose it is.", "ReplaydTTFTRegression", slo("ttft")),
		latency("TTFT from due", "ttft_from_due", "What a user of the real system would have waited: lateness, lane wait and a stall of the server are in it. "+
			"Far above the panel to its left: replayd has no free lanes, or is late itself, and TTFT alone flatters.", "ReplaydOverload", slo("ttft")),
		latency("End-to-end latency (e2e)", "e2e", "From the first byte of the request to the last chunk with content, of ok requests. Long answers take longer: hold it against the pale line, not against another trace.",
			"ReplaydSLOBurnSlow", slo("e2e")),
		latency("Time per output token (TPOT)", "tpot", "Of one request: (last chunk − first chunk) / (output tokens − 1). When it is up while TTFT is not, the batch is larger or the GPU slower: see batch, clocks and throttling in Correlation.",
			"ReplaydTPOTRegression", slo("tpot")),
		latency("Inter-token latency (ITL)", "itl", "What a reader sees as stutter; a chunk can hold several tokens. p99 up alone: prefills of others get between the decode steps, or a proxy sends in bunches.",
			"ReplaydTPOTRegression"),
		slower(),
	)

	b.row("Outcomes")
	b.put(8, 8, goodOverTime(), whyNotGood(), outcomes())

	b.row("Load: the same work as before?")
	b.put(8, 8, expectedAndFinished(), tokens("output", "Output tokens", "Of ok requests, when they end; reasoning is part of output. Fewer than the pale line at as many requests: answers are shorter than the trace asks for, or fail.", "reasoning"),
		tokens("prompt", "Prompt tokens", "Of ok requests, when they end; cached are those that the engine found in its prefix cache, if it says so. Cached down at the same prompt: the cache lost, and TTFT is up for that.", "cached"),
		placeInTrace(), atOnce(), otherLength())
	return b
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
// queries of which one answers, and each has its colour.
func now(p *panel) *panel {
	p.option(object{"textMode": "value_and_name", "justifyMode": "center", "text": object{"titleSize": 12, "valueSize": 17}})
	return p.thresholds("text")
}

func nowGood() *panel {
	return now(stat("Service attainment", "percentunit",
		"Good ÷ eligible requests of the last 5 minutes, beside the objective. Good: ended ok and kept every bound of the SLO. Those that failed or found no lane are eligible, those that replayd held back itself are not. No data: nothing was eligible. "+
			"Red: below the objective (slo.objective). Then look which service level breaks, and since when.", "ReplaydSLOBurnFast",
		query{share("") + ` >= on() ` + objective, "attainment"}, query{share("") + ` < on() ` + objective, "attainment"},
		query{objective, "objective"})).set(object{"decimals": 1}).coloredQuery("A", "green").coloredQuery("B", "red")
}

func nowBurn() *panel {
	burn := func(window string) string {
		return `max(workload:replayd_bad_requests:ratio_rate` + window + `{` + of + `}) / on() (1 - ` + objective + `)`
	}
	p := stat("Budget burn", "suffix:×",
		"How many times faster than allowed errors come: at 1 the budget of errors (1 − objective) is used up just when its month ends, at 14.4 a fiftieth of it in an hour. "+
			"Red in both: act now. Red in 5 min only: it has just begun, or was short.", "ReplaydSLOBurnFast",
		query{`(1 - ` + share("") + `) / on() (1 - ` + objective + `)`, "5 min"}, query{burn("1h"), "1 h"})
	return now(p).set(object{"decimals": 1}).thresholds("green", step{1, "yellow"}, step{6, "orange"}, step{14.4, "red"})
}

func nowSLO(short, name string) *panel {
	figure := quantileOver("5m", 0.9, name)
	bound := slo(name)
	return now(stat(short+" p90", "s",
		short+" that nine of ten ok requests of the last 5 minutes kept, beside the configured bound. Red: more than one in ten are over it. "+
			"Blue: no bound is configured. See the graph below for since when, and Correlation for whose it is.", "Replayd"+short+"Regression",
		query{figure + ` <= on() ` + bound.expr, "p90"}, query{figure + ` > on() ` + bound.expr, "p90"},
		query{figure + ` unless on() ` + bound.expr, "p90"}, bound)).coloredQuery("A", "green").coloredQuery("B", "red").coloredQuery("C", "blue")
}

func nowErrors() *panel {
	p := stat("Failures", "percentunit",
		"Share of the requests that ended in the last 5 minutes, the two most frequent ways to fail; 0 when none did, and no data when none ended. What each outcome means stands in docs/metrics.md. "+
			"Red: look at the target's own log; the record file has the server's words.", "ReplaydErrorRatio",
		query{`topk(2, sum by (outcome) (rate(replayd_requests_total{` + of + `,outcome!~"ok|aborted|cancelled"}[5m])) / on() group_left () (sum(rate(replayd_requests_total{` + of + `,outcome!~"aborted|cancelled"}[5m])) > 0) > 0)
  or on() label_replace(0 * (sum(rate(replayd_requests_total{` + of + `,outcome!~"aborted|cancelled"}[5m])) > 0), "outcome", "nothing", "", "")`, "{{outcome}}"})
	now(p).set(object{"decimals": 1})
	return p.thresholds("green", step{1e-9, "yellow"}, step{0.01, "orange"}, step{0.05, "red"})
}

func nowMeasured() *panel {
	p := stat("Measurement", "s",
		"Is it the measurement? How late replayd itself sent, in the mean of 5 minutes, and which share of the requests it held back or missed. What found no lane is not in it, that is the service's. "+
			"Red: the load is not the trace's, so the figures of this page say less about the service. Then open Replay health (link of this panel).", "ReplaydLate",
		query{ownLateness(of, "5m"), "late"},
		query{`sum(rate(replayd_requests_dropped_total{` + of + `,reason!~"filtered|overload"}[5m])) / (sum(rate(replayd_requests_expected_total{` + of + `}[5m])) > 0)`, "not sent"})
	now(p).thresholds("green", step{0.005, "yellow"}, step{0.05, "red"})
	p.override("^late$", "decimals", 0).override("^not sent$", "unit", "percentunit", "decimals", 1, "thresholds",
		object{"mode": "absolute", "steps": []object{{"color": "green", "value": nil}, {"color": "yellow", "value": 1e-9}, {"color": "red", "value": 0.01}}})
	return p.leadsTo("Replay health", "replayd-health")
}

// latency plots the quantiles of a client's histogram, its bound, and the earlier p90 at the same place of the trace.
func latency(title, name, description, section string, bound ...query) *panel {
	p := timeseries(title, "s", description+" Pale: p90 at the place of the trace "+then+".", section, append(quantiles(name), bound...)...)
	if slices.Contains(withExemplars, name) {
		p.exemplarsOf("p99")
	}
	return p.leadsTo("Correlation", "replayd-correlation").
		set(object{"min": 0}).custom(object{"fillOpacity": 0}).quantileColors().redSLO().paleBefore()
}

// withExemplars lists the histograms with exemplars, whose ids are X-Request-Ids.
var withExemplars = []string{"ttft", "ttft_from_due", "e2e"}

// then is the chosen earlier time, in words.
const then = "${before:text}"

func slower() *panel {
	ratio := func(name string) string {
		return quantileOver("5m", 0.9, name) + ` / on() (` + quantileAt("5m", 0.9, name, ago) + ` > 0)`
	}
	return timeseries("p90 now ÷ p90 before", "suffix:×",
		"p90 of 5 minutes by p90 at the same place of the trace "+then+": the same requests, so 1 is as before; from 1.5 on, for longer, it is an alert. Then something changed: look for a release, another neighbour, a colder cache. "+
			"The axis ends at 5. Only the grey line: there is no figure from then yet.", "ReplaydTTFTRegression",
		query{ratio("ttft"), "TTFT"}, query{ratio("tpot"), "TPOT"}, query{ratio("e2e"), "e2e"}, query{`vector(1)`, "as before"}).
		set(object{"min": 0, "max": 5}).custom(object{"axisSoftMax": 2, "fillOpacity": 0, "thresholdsStyle": object{"mode": "dashed"}}).thresholds("transparent", step{1.5, "red"}).
		colored("^TTFT$", blue).colored("^TPOT$", orange).colored("^e2e$", purple).
		colored("^as before$", pale)
}

func goodOverTime() *panel {
	queries := append(compared(share, "attainment"), query{objective, "objective"})
	return timeseries("Service attainment and objective", "percentunit",
		"Good ÷ eligible requests over 5 minutes: failed requests count, and those that found no lane, which no latency shows. Below the red line the error budget burns; pale: at the place of the trace "+then+".",
		"ReplaydSLOBurnFast", queries...).
		set(object{"max": 1}).custom(object{"axisSoftMin": 0.95, "fillOpacity": 0}).colored("^attainment$", green).paleBefore().
		dashed("^objective$", "red")
}

func whyNotGood() *panel {
	return timeseries("SLO violations by bound", "percentunit",
		"Share of the finished requests that broke each service level, over 5 minutes; one request can break several, and one that failed counts as error alone. "+
			"The line that is up says where to look: ttft to queue and prefill, tpot to decode, error to the outcomes.", "ReplaydSLOBurnSlow",
		query{`sum by (slo) (rate(replayd_slo_violations_total{` + of + `}[5m])) / on() group_left () (sum(rate(replayd_requests_total{` + of + `}[5m])) > 0)`, "{{slo}}"}).
		set(object{"min": 0}).custom(object{"axisSoftMax": 0.05}).
		colored("^ttft$", blue).colored("^tpot$", orange).colored("^e2e$", purple).colored("^error$", "red")
}

func outcomes() *panel {
	// Sixteen outcomes are there at 0 always: those that were none in the whole range only lengthen the legend.
	return timeseries("Requests by outcome", "reqps",
		"Finished requests by outcome; those that did not occur in the time shown are left out. Green alone is as it should be. Another colour: docs/metrics.md has a line for each outcome, the record file the server's own words.",
		"ReplaydErrorRatio",
		query{`sum by (outcome) (rate(replayd_requests_total{` + of + `}[$__rate_interval]))
  and on (outcome) (sum by (outcome) (increase(replayd_requests_total{` + of + `}[$__range] @ end())) > 0 or sum by (outcome) (replayd_requests_total{` + of + `,outcome="ok"}))`, "{{outcome}}"}).
		set(object{"min": 0}).stacked().
		outcomeColors()
}

func expectedAndFinished() *panel {
	return timeseries("Requests expected, finished and not sent", "reqps",
		"Requests that fell due, that ended, and that were never sent. Finished follows expected by the length of a request; when it stays below, requests pile up: the service does not keep up, or replayd's lanes have run out.",
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
		"The trace time that is being played, from 0 to the end of each loop; the dashed line is how long a loop takes on the wall. The pale line must lie under the other: then present and before are the same place. "+
			"Where it does not, or the line is flat, compare nothing and open Replay health.", "How to read this",
		append(compared(func(offset string) string { return `max(replayd_position_seconds{` + of + `}` + offset + `)` }, "position"),
			query{`max(replayd_loop_duration_seconds{` + of + `})`, "loop"})...).
		set(object{"min": 0}).colored("^position$", blue).paleBefore().
		dashed("^loop$", "text")
}

func atOnce() *panel {
	return timeseries("Requests in flight and waiting", "short",
		"In flight: sent and not finished. Waiting: due, and held by replayd for want of a lane or for the turn before. Above the pale line at the same place of the trace: the service takes longer for the same work.",
		"ReplaydOverload",
		append(compared(func(offset string) string { return `sum(replayd_requests_in_flight{` + of + `}` + offset + `)` }, "in flight"),
			query{`sum(replayd_requests_waiting{` + of + `})`, "waiting"})...).
		set(object{"min": 0, "decimals": 0}).colored("^in flight$", blue).colored("^waiting$", orange).paleBefore()
}

func otherLength() *panel {
	return timeseries("Output length mismatches", "percentunit",
		"Share of the ok answers whose usage differs from what the trace asks for. Output above 0: the engine stops early (its longest context, a stop word, ignore_eos refused), so TPOT and e2e are of less work. Prompt: the chat template is not known yet.",
		"ReplaydOutputShort",
		query{`sum by (kind) (rate(replayd_length_mismatch_total{` + of + `}[5m])) / on() group_left () (sum(rate(replayd_requests_total{` + of + `,outcome="ok"}[5m])) > 0)`, "{{kind}}"}).
		set(object{"min": 0}).custom(object{"axisSoftMax": 0.05}).colored("^output$", blue).colored("^prompt$", orange)
}
