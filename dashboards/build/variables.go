package main

// The variables are chosen in order, and each list depends on the choices before it. If Prometheus has no label
// cluster, "All" matches that.

func datasource() object {
	return object{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": object{}, "hide": 0, "refresh": 1, "regex": ""}
}

// choice is one value of a label, or of a text between captures. The first value is selected at first.
func choice(name, label, promQL string) object {
	return object{
		"name": name, "label": label, "type": "query", "datasource": prometheus(), "query": object{"query": promQL, "refId": name}, "definition": promQL,
		"current": object{}, "hide": 0, "refresh": 2, "sort": 1, "multi": false, "includeAll": false, "regex": "",
	}
}

// choices are any number of values, at first all. "All" also matches series without the label.
func choices(name, label, promQL string) object {
	v := choice(name, label, promQL)
	v["multi"], v["includeAll"], v["allValue"] = true, true, ".*"
	v["current"] = object{"text": "All", "value": "$__all"}
	return v
}

func cluster() object {
	return choices("cluster", "Cluster", `label_values(replayd_requests_expected_total, cluster)`)
}

func namespace() object {
	return choices("namespace", "Namespace", `label_values(replayd_requests_expected_total{cluster=~"$cluster"}, namespace)`)
}

// workload and targetOf are single choices. with is empty or has further matchers.
func workload(with string) object {
	return choice("workload", "Workload", `label_values(replayd_requests_expected_total{`+here+with+`}, workload)`)
}

func targetOf(with string) object {
	return choice("target", "Target", `label_values(replayd_requests_expected_total{`+here+with+`}, target)`)
}

func model() object {
	return choices("model", "Model", `label_values(replayd_requests_expected_total{`+onTarget+`}, model)`)
}

// scrape is the interval at which Prometheus scrapes replayd: the least step of each query. $__rate_interval is at least four of
// it, whatever Grafana's data source is set to.
func scrape() object {
	v := choice("scrape", "Scraped each", "5s,10s,15s,30s,1m")
	v["type"], v["query"], v["current"] = "custom", v["definition"], object{"text": "15s", "value": "15s"}
	delete(v, "definition")
	delete(v, "datasource")
	delete(v, "refresh")
	return v
}

// before is the age of the pale line in milliseconds, because a loop need not be whole seconds. PromQL's offset takes a
// literal, so the length of the loop is queried here: the current one, or the last one of a workload that is gone.
func before() object {
	one := func(text, promQL string) string {
		return `label_replace(` + promQL + `, "before", "` + text + `", "", "")`
	}
	const loop = `replayd_loop_duration_seconds{` + of + `}`
	v := choice("before", "Compare with", `query_result(`+
		one("1 loop ago", `round(1000 * (max(`+loop+`) or max(last_over_time(`+loop+`[1d]))) >= 1000)`)+` or `+
		one("a day ago", `vector(86400000)`)+` or `+one("a week ago", `vector(604800000)`)+`)`)
	v["regex"], v["sort"] = `/before="(?<text>[^"]+)"\} (?<value>\d+) /`, 1 // by name: the loop is first, in whatever order they come
	return v
}

// annotations mark events that change everything after them. Each query looks back over a whole step, because a short
// event would be between two steps.
func annotations() []object {
	return []object{
		mark("Reloads", "blue", changed(`replayd_config_last_reload_success_timestamp_seconds{`+here+`}`)+`
  and on (cluster, namespace, job, instance, pod, container, endpoint) replayd_requests_expected_total{`+of+`}`, "Reload", "{{instance}}"),
		mark("Loops", "rgba(160, 160, 160, 0.6)", `max by (cluster, namespace, workload, target) (`+changed(`replayd_loop{`+of+`}`)+`)`,
			"A loop begins", "{{workload}} on {{target}}"),
		mark("Guard", "orange", `max by (cluster, namespace, workload, target, limit) (max_over_time(replayd_guard_open{`+of+`}[$__rate_interval])) > 0`,
			"The guard is open: {{limit}}", "{{workload}} on {{target}}"),
		mark("Engine restarts", "red", `max by (cluster, namespace, target, address) (`+changed(`replayd_engine_restarts_total{`+onTarget+`}`)+`)`,
			"The engine restarted", "{{target}} {{address}}"),
		mark("Unreachable", "red", `max by (cluster, namespace, target) (1 - min_over_time(replayd_target_up{`+onTarget+`}[$__rate_interval])) > 0`,
			"The target is unreachable", "{{target}}"),
	}
}

// changed selects series whose value changed within a step. changes() counts the birth of a series too, on some servers.
func changed(series string) string {
	return `(max_over_time(` + series + `[$__rate_interval]) != min_over_time(` + series + `[$__rate_interval]))`
}

// risen is by how much counters have risen within a window. increase() counts what a new series begins with, on some servers.
func risen(series, window string) string {
	return `(` + series + ` - min_over_time(` + series + `[` + window + `]))`
}

// mark is one annotation.
func mark(name, color, promQL, title, text string) object {
	return object{
		"name": name, "datasource": prometheus(), "enable": true, "hide": false, "iconColor": color, "expr": promQL, "step": "$scrape",
		"titleFormat": title, "textFormat": text, "tagKeys": "", "useValueForTime": false,
	}
}
