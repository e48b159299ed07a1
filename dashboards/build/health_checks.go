package main

// unaccounted is 0 for each process as long as the ledger balances. In one sum, an excess here would hide a lack there.
const unaccounted = `sum ` + byProcess + ` (replayd_requests_expected_total{` + mine + `}) - sum ` + byProcess + ` (replayd_requests_total{` + mine + `})
  - sum ` + byProcess + ` (replayd_requests_dropped_total{` + mine + `,reason!="filtered"})
  - sum ` + byProcess + ` (replayd_requests_in_flight{` + mine + `}) - sum ` + byProcess + ` (replayd_requests_waiting{` + mine + `})`

// check is one figure of the first lines. Green means ok.
func check(title, unit, description, section, expr string, decimals int, steps ...step) *panel {
	p := stat(title, unit, description, section, query{expr, ""}).thresholds("green", steps...).set(object{"decimals": decimals})
	return p.option(object{"justifyMode": "center", "textMode": "value", "text": object{"valueSize": 28}})
}

func checks() []*panel {
	engines := `sum(1 - min by (cluster, namespace, target, replica) (replayd_engine_up{` + onTarget + `}))`
	ok := rateOf("requests", `,outcome="ok"`, "5m")
	return []*panel{
		check("Lateness without lane wait", "s", "Mean of 5 minutes of what replayd was late by, lane wait taken off. Yellow from 5 ms on, red from 50 ms: the load is not the trace's. See the CPU below first.",
			"ReplaydLate", ownLateness(mine, "5m"), 0, step{0.005, "yellow"}, step{0.05, "red"}),
		check("Not sent", "percentunit", "Share of the expected requests of 5 minutes that replayd held back or missed. Red: the load has holes; the reasons are below. What found no lane is not in it: that is the service's, which did not answer in time those before.",
			"ReplaydMissed", rateOf("requests_dropped", `,reason!~"filtered|overload"`, "5m")+` / (`+rateOf("requests_expected", "", "5m")+` > 0)`, 1, step{1e-9, "yellow"}, step{0.01, "red"}),
		check("Unaccounted", "short", "Expected requests less finished, dropped, in flight and waiting, of the process that is furthest off. It is 0 at every scrape; anything else is a bug in replayd: report it, and trust no count until then.",
			"ReplaydAccountingBroken", `max(abs(`+unaccounted+`))`, 0, step{1, "red"}),
		check("Shards missing", "short", "Processes that share the trace, less those that are there. Red: their rows are not sent by anybody. Look for the pod, and whether two have one index.",
			"ReplaydShardMissing", shardsMissing, 0, step{1, "red"}),
		check("Guard or pause", "short", "Whether the guard or a pause holds requests back in any of the processes. Then only quiet moments are measured: see which limit, and whether the engine is overloaded by others.",
			"ReplaydGuardOpen", `max(replayd_guard_open{`+mine+`}) + 2 * max(replayd_paused{`+mine+`})`, 0, step{1, "orange"}).
			word("0", "nothing", "green").word("1", "the guard", "orange").word("2", "a pause", "orange").word("3", "guard and pause", "orange"),
		check("CPU throttled", "percentunit", "Share of the enforcement periods of 5 minutes in which the cgroup's limit throttled a process; the worst process. 0 without a limit. Red: raise the limit, or the figures are of it.",
			"ReplaydLate", `max(`+ofProcess(`rate(replayd_cgroup_cpu_throttled_periods_total{`+process+`}[5m]) / (rate(replayd_cgroup_cpu_periods_total{`+process+`}[5m]) > 0)`)+`) or 0 * count(`+ofProcess(`process_cpu_seconds_total{`+process+`}`)+`)`, 1, step{0.01, "yellow"}, step{0.05, "red"}),
		check("Chunk times from", "percentunit", "Where the times of chunks come from. The kernel's do not get longer when replayd is busy; those of the read do, by the read delay, which is then not known. A share: processes differ.",
			"How to read this", `sum(replayd_timestamp_source_info{`+mine+`,source="kernel"}) / (sum(replayd_timestamp_source_info{`+mine+`}) > 0)`, 0, step{0, "yellow"}, step{1, "green"}).
			word("1", "the kernel", "green").word("0", "the read", "yellow").empty("no answer yet"),
		check("Length mismatches", "percentunit", "Share of the ok answers of 5 minutes with another output length than the trace asks for, or without usage. Red: latencies are of other work than the trace's.",
			"ReplaydOutputShort", `(`+rateOf("length_mismatch", `,kind="output"`, "5m")+` + `+rateOf("responses_without_usage", "", "5m")+`) / (`+ok+` > 0)`, 1, step{1e-9, "yellow"}, step{0.05, "red"}),
		check("Records lost", "short", "Records of finished requests of the last 15 minutes that are in no file: the disk is full, slow or not writable. Metrics are not touched by it; the log says which.",
			"ReplaydRecordsLost", `sum(`+ofProcess(`increase(replayd_record_errors_total{`+process+`}[15m])`)+`)`, 0, step{1e-9, "red"}),
		check("Configuration", "short", "Whether the latest load of the configuration succeeded in all of the processes. Red: the old one runs on; the log has each fault with its line.",
			"ReplaydReloadFailed", `min(`+ofProcess(`replayd_config_last_reload_successful{`+process+`}`)+`)`, 0, step{1, "green"}).
			word("1", "as written", "green").word("0", "refused", "red"),
		check("Engines unseen", "short", "Replicas of the target whose metrics page one of the processes, or all, could not read. Red: nothing is known of their queue and cache, and guards that need it hold requests back. See the reasons below.",
			"ReplaydEngineUnseen", engines, 0, step{1, "red"}).empty("no page"),
		check("Clock skew", "s", "Wall clock less the loop's own time, the worst process. From 1 s on the replay goes on where the clock is: requests are missed or come at once. Look at the time service of the host.",
			"ReplaydMissed", `max(abs(replayd_wall_clock_skew_seconds{`+mine+`}))`, 0, step{0.1, "yellow"}, step{1, "red"}),
	}
}
