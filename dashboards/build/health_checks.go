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
	engines := `sum(1 - min by (cluster, namespace, target, address) (replayd_engine_up{` + onTarget + `}))`
	ok := rateOf("requests", `,outcome="ok"`, "5m")
	return []*panel{
		check("Own lateness", "s", "Mean lateness over 5 minutes without lane wait. Yellow from 5 ms, red from 50 ms: the load is not the trace's. Check the CPU panels below first.",
			"ReplaydLate", ownLateness(mine, "5m"), 0, step{0.005, "yellow"}, step{0.05, "red"}),
		check("Not sent", "percentunit", "Fraction of the expected requests of 5 minutes that replayd held back or missed. Red: the load has holes; the reasons are below. Requests without a lane are not included: the service was too slow for them.",
			"ReplaydMissed", rateOf("requests_dropped", `,reason!~"filtered|overload"`, "5m")+` / (`+rateOf("requests_expected", "", "5m")+` > 0)`, 1, step{1e-9, "yellow"}, step{0.01, "red"}),
		check("Unaccounted", "short", "Expected − finished − dropped − in flight − waiting, of the worst process. It is 0 at every scrape. Another value is a bug in replayd: report it, and do not trust counts until it is fixed.",
			"ReplaydAccountingBroken", `max(abs(`+unaccounted+`))`, 0, step{1, "red"}),
		check("Shards missing", "short", "Shards without a process. Red: their rows are not sent. Check the pods, and whether two have the same index.",
			"ReplaydShardMissing", shardsMissing, 0, step{1, "red"}),
		check("Guard or pause", "short", "Whether the guard or a pause holds requests back in any process. Then only quiet moments are measured: check which limit is open, and whether other clients overload the engine.",
			"ReplaydGuardOpen", `max(replayd_guard_open{`+mine+`}) + 2 * max(replayd_paused{`+mine+`})`, 0, step{1, "orange"}).
			word("0", "nothing", "green").word("1", "the guard", "orange").word("2", "a pause", "orange").word("3", "guard and pause", "orange"),
		check("CPU throttled", "percentunit", "Fraction of the CPU periods of 5 minutes in which the cgroup throttled the worst process. 0 without a limit. Red: raise the CPU limit; otherwise the figures show the limit.",
			"ReplaydLate", `max(`+ofProcess(`rate(replayd_cgroup_cpu_throttled_periods_total{`+process+`}[5m]) / (rate(replayd_cgroup_cpu_periods_total{`+process+`}[5m]) > 0)`)+`) or 0 * count(`+ofProcess(`process_cpu_seconds_total{`+process+`}`)+`)`, 1, step{0.01, "yellow"}, step{0.05, "red"}),
		check("Chunk times from", "percentunit", "Source of the chunk times. The kernel's receive times do not depend on how busy replayd is. Times of the read are late by the read delay, which is then unknown. A percentage: processes differ.",
			"How to read this", `sum(replayd_timestamp_source_info{`+mine+`,source="kernel"}) / (sum(replayd_timestamp_source_info{`+mine+`}) > 0)`, 0, step{0, "yellow"}, step{1, "green"}).
			word("1", "the kernel", "green").word("0", "the read", "yellow").empty("no answer yet"),
		check("Length mismatches", "percentunit", "Fraction of the ok answers of 5 minutes with another length than the trace asks for, of the prompt or of the output, whichever has more, or without usage. Red: the latencies are for other work than the trace's.",
			"ReplaydOutputShort", `(max(sum by (kind) (rate(replayd_length_mismatch_total{`+mine+`}[5m]))) + `+rateOf("responses_without_usage", "", "5m")+`) / (`+ok+` > 0)`, 1, step{1e-9, "yellow"}, step{0.05, "red"}),
		check("Records lost", "short", "Records of the last 15 minutes that are in no file: the disk is full, slow or not writable. Metrics are not affected. The log says which.",
			"ReplaydRecordsLost", `sum(`+ofProcess(risen(`replayd_record_errors_total{`+process+`}`, "15m"))+`)`, 0, step{1e-9, "red"}),
		check("Configuration", "short", "Whether the latest reload succeeded in all processes. Red: the old configuration stays in effect; the log has every error with its line.",
			"ReplaydReloadFailed", `min(`+ofProcess(`replayd_config_last_reload_successful{`+process+`}`)+`)`, 0, step{1, "green"}).
			word("1", "as written", "green").word("0", "refused", "red"),
		check("Engines down", "short", "Replicas whose metrics page at least one process cannot scrape. Red: their queue and cache are unknown, and guards that need them hold requests back. The reasons are below.",
			"ReplaydEngineUnseen", engines, 0, step{1, "red"}).empty("no page"),
		check("Clock skew", "s", "Wall clock − the loop's own clock, of the worst process. From 1 s, the replay jumps to the wall clock, and requests are missed. Check the time service of the host.",
			"ReplaydMissed", `max(abs(replayd_wall_clock_skew_seconds{`+mine+`}))`, 0, step{0.1, "yellow"}, step{1, "red"}),
	}
}
