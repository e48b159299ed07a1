package main

import "fmt"

// The panels of sessions look back over an hour: sessions take minutes to hours, and few of them end in a minute.

func sessionPanels() []*panel {
	all := []*panel{sessionOutcomes(), makespans(), sessionParts(), cachedOfSessions()}
	for _, p := range all {
		p.needs("No session has ended: rows have none, or they take longer. See Sessions in docs/reference/metrics.md.")
	}
	return all
}

func sessionOutcomes() *panel {
	return timeseries("Sessions by outcome", "short",
		"Sessions that ended in the last hour, and those in progress. Failed: one of its requests failed or found no lane. Cut: ended by a pause, the budget, a stop or a reload, not by the service. Only green is good.",
		"ReplaydSessionSLOBurn",
		query{`sum by (outcome) (increase(replayd_sessions_total{` + of + `}[1h]))`, "{{outcome}}"},
		query{`sum(replayd_sessions_in_progress{` + of + `})`, "in progress"}).
		set(object{"min": 0, "decimals": 0}).custom(object{"fillOpacity": 0}).
		colored("^ok$", green).colored("^failed$", "red").colored("^cut$", orange).colored("^in progress$", blue)
}

func makespans() *panel {
	at := func(q float64) string { return quantileOver("1h", q, "session_makespan") }
	return timeseries("Makespan of sessions", "s",
		"From the due time of a session's first request to the end of its last, of sessions that ended ok in the last hour. A session above the red line is not good. The waits for tools are part of it: see the panel to the right.",
		"ReplaydSessionSLOBurn",
		query{at(0.5), "p50"}, query{at(0.9), "p90"}, query{`max(replayd_session_slo_threshold_seconds{` + of + `})`, "SLO"}).
		set(object{"min": 0}).custom(object{"fillOpacity": 0}).quantileColors().redSLO()
}

func sessionParts() *panel {
	return timeseries("Time of sessions by part", "s",
		"Mean time of a session along its critical path, of sessions that ended ok in the last hour. The parts add up to the makespan. Tools: recorded waits between requests. Lateness: due to write, lanes included. TTFT: queue and prefill of the engine. Decode: first content to the end.",
		"ReplaydSessionSLOBurn",
		query{`sum by (part) (rate(replayd_session_time_seconds_total{` + of + `}[1h])) / on() group_left () (sum(rate(replayd_sessions_total{` + of + `,outcome="ok"}[1h])) > 0)`, "{{part}}"}).
		set(object{"min": 0}).stacked().
		colored("^tools$", pale).colored("^lateness$", "red").colored("^ttft$", blue).colored("^decode$", orange)
}

func cachedOfSessions() *panel {
	mean := func(what string) string {
		return fmt.Sprintf(`sum(rate(replayd_session_cached_ratio_%s{%s}[1h]))`, what, of)
	}
	return timeseries("Cached prompt tokens of sessions", "percentunit",
		"Mean share of a session's prompt tokens that the engine had in its prefix cache, as its answers say, of sessions that ended ok in the last hour. It falls if a router sends turns to replicas without the prefix, or if the cache is too small. No data: the engine does not report cached tokens.",
		"ReplaydSessionSLOBurn",
		query{mean("sum") + ` / (` + mean("count") + ` > 0)`, "cached"}).
		set(object{"min": 0, "max": 1}).colored("^cached$", green)
}
