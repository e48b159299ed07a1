package main

// The variables are chosen one after the other, and each list knows the choices before it. Where a Prometheus has no label cluster,
// "All" stands for that.

func datasource() object {
	return object{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": object{}, "hide": 0, "refresh": 1, "regex": ""}
}

// choice is one value of a label, or of a text between captures; the first is taken at the start.
func choice(name, label, promQL string) object {
	return object{
		"name": name, "label": label, "type": "query", "datasource": prometheus(), "query": object{"query": promQL, "refId": name}, "definition": promQL,
		"current": object{}, "hide": 0, "refresh": 2, "sort": 1, "multi": false, "includeAll": false, "regex": "",
	}
}

// choices are any number of values, at the start all. All matches also what has no such label.
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

// workload and targetOf are one each. With is empty or further matchers.
func workload(with string) object {
	return choice("workload", "Workload", `label_values(replayd_requests_expected_total{`+here+with+`}, workload)`)
}

func targetOf(with string) object {
	return choice("target", "Target", `label_values(replayd_requests_expected_total{`+here+with+`}, target)`)
}

func model() object {
	return choices("model", "Model", `label_values(replayd_requests_expected_total{`+onTarget+`}, model)`)
}

// kind is how histograms are read: the end of their names is its value. Native ones come first, and are offered where there are any.
// It looks a day back, as before does: a replayd that is down must not take what it measured until then off the page.
func kind() object {
	one := func(text, ending, promQL string) string {
		return `label_replace(label_replace(` + promQL + `, "kind", "` + text + `", "", ""), "value", "` + ending + `", "", "")`
	}
	v := choice("kind", "Histograms", `query_result(`+
		one("native", "seconds", `group(present_over_time(replayd_ttft_seconds{`+onTarget+`}[1d]))`)+` or `+
		one("classic", "seconds_bucket", `group(present_over_time(replayd_ttft_seconds_bucket{`+onTarget+`,le="+Inf"}[1d]))`)+`)`)
	v["regex"], v["sort"] = `/kind="(?<text>\w+)",\s*value="(?<value>\w+)"/`, 0
	return v
}

// before is how long ago the pale line is from, in milliseconds: a loop need not be whole seconds. PromQL's offset takes a literal, so the
// loop's length is looked up here: today's, and only of a workload that is gone the last there was.
func before() object {
	one := func(text, promQL string) string {
		return `label_replace(` + promQL + `, "before", "` + text + `", "", "")`
	}
	const loop = `replayd_loop_duration_seconds{` + of + `}`
	v := choice("before", "Compare with", `query_result(`+
		one("1 loop ago", `round(1000 * (max(`+loop+`) or max(last_over_time(`+loop+`[1d]))) >= 1000)`)+` or `+
		one("1 day ago", `vector(86400000)`)+` or `+one("1 week ago", `vector(604800000)`)+`)`)
	v["regex"], v["sort"] = `/before="(?<text>[^"]+)"\} (?<value>\d+) /`, 0
	return v
}

// annotations mark what changes everything after it. Each looks back over a whole step, or what is short would be between two.
func annotations() []object {
	one := func(name, color, promQL, title, text string) object {
		return object{
			"name": name, "datasource": prometheus(), "enable": true, "hide": false, "iconColor": color, "expr": promQL, "step": "15s",
			"titleFormat": title, "textFormat": text, "tagKeys": "", "useValueForTime": false,
		}
	}
	return []object{
		one("Reloads", "blue", `changes(replayd_config_last_reload_success_timestamp_seconds{`+here+`}[$__rate_interval]) > 0
  and on (cluster, namespace, job, instance) replayd_requests_expected_total{`+of+`}`, "Reload", "{{instance}}"),
		one("Loops", "rgba(160, 160, 160, 0.6)", `max by (cluster, namespace, workload, target) (changes(replayd_loop{`+of+`}[$__rate_interval])) > 0`,
			"A loop begins", "{{workload}} on {{target}}"),
		one("Guard", "orange", `max by (cluster, namespace, workload, target, limit) (max_over_time(replayd_guard_open{`+of+`}[$__rate_interval])) > 0`,
			"The guard is open: {{limit}}", "{{workload}} on {{target}}"),
		one("Engine restarts", "red", `max by (cluster, namespace, target, replica) (increase(replayd_engine_restarts_total{`+onTarget+`}[$__rate_interval])) > 0`,
			"The engine restarted", "{{target}} {{replica}}"),
	}
}
