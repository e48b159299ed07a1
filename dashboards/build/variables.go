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

func workload() object {
	return choice("workload", "Workload", `label_values(replayd_requests_expected_total{cluster=~"$cluster"}, workload)`)
}

func targetOf(workload string) object {
	return choice("target", "Target", `label_values(replayd_requests_expected_total{cluster=~"$cluster"`+workload+`}, target)`)
}

func model() object {
	return choices("model", "Model", `label_values(replayd_requests_expected_total{cluster=~"$cluster",target=~"$target"}, model)`)
}

// kind is how histograms are read: the end of their names is its value. Native ones come first, and are offered where there are any.
// It looks a day back, as before does: a replayd that is down must not take what it measured until then off the page.
func kind() object {
	one := func(text, ending, promQL string) string {
		return `label_replace(label_replace(` + promQL + `, "kind", "` + text + `", "", ""), "value", "` + ending + `", "", "")`
	}
	v := choice("kind", "Histograms", `query_result(`+
		one("native", "seconds", `group(present_over_time(replayd_ttft_seconds{cluster=~"$cluster",target=~"$target"}[1d]))`)+` or `+
		one("classic", "seconds_bucket", `group(present_over_time(replayd_ttft_seconds_bucket{cluster=~"$cluster",target=~"$target",le="+Inf"}[1d]))`)+`)`)
	v["regex"], v["sort"] = `/kind="(?<text>\w+)",\s*value="(?<value>\w+)"/`, 0
	return v
}

// before is how long ago the pale line is from, in seconds. PromQL's offset takes a literal, so the loop's length is looked up here.
func before() object {
	one := func(text, promQL string) string {
		return `label_replace(` + promQL + `, "before", "` + text + `", "", "")`
	}
	v := choice("before", "Compare with", `query_result(`+
		one("1 loop ago", `max(last_over_time(replayd_loop_duration_seconds{cluster=~"$cluster",workload=~"$workload",target=~"$target"}[1d])) > 0`)+` or `+
		one("1 day ago", `vector(86400)`)+` or `+one("1 week ago", `vector(604800)`)+`)`)
	v["regex"], v["sort"] = `/before="(?<text>[^"]+)"\} (?<value>\d+)/`, 0
	return v
}

// annotations mark what changes everything after it.
func annotations() []object {
	one := func(name, color, promQL, title, text string) object {
		return object{
			"name": name, "datasource": prometheus(), "enable": true, "hide": false, "iconColor": color, "expr": promQL, "step": "15s",
			"titleFormat": title, "textFormat": text, "tagKeys": "", "useValueForTime": false,
		}
	}
	of := `{cluster=~"$cluster"}`
	return []object{
		one("Reloads", "blue", `changes(replayd_config_last_reload_success_timestamp_seconds`+of+`[$__rate_interval]) > 0`, "Reload", "{{instance}}"),
		one("Loops", "rgba(160, 160, 160, 0.6)", `max by (workload, target) (changes(replayd_loop{cluster=~"$cluster",target=~"$target"}[$__rate_interval])) > 0`, "A loop begins", "{{workload}} on {{target}}"),
		one("Guard", "orange", `max by (workload, target, limit) (replayd_guard_open{cluster=~"$cluster",target=~"$target"}) > 0`, "The guard is open: {{limit}}", "{{workload}} on {{target}}"),
		one("Engine restarts", "red", `max by (target, replica) (increase(replayd_engine_restarts_total{cluster=~"$cluster",target=~"$target"}[$__rate_interval])) > 0`, "The engine restarted", "{{target}} {{replica}}"),
	}
}
