package main

import (
	"fmt"
	"strings"
)

// figures is an expression over the target's GPUs. Each GPU counts once, however many shards report it. The labels keep
// GPUs apart and give each a short name.
func figures(expr string) string {
	return `max by (cluster, namespace, gpu, uuid, hostname) (` + strings.ReplaceAll(expr, "{}", "{"+onTarget+"}") + `)`
}

const gpuName = "GPU {{gpu}} {{hostname}}"

// ofGPU are the panels of the target's GPUs: those of the first screen, and more.
func ofGPU() (first, more []*panel) {
	activity := func(name string) string { return `avg(` + figures("replayd_gpu_"+name+"{}") + `)` }
	perJoule := compared(func(offset string) string {
		return fmt.Sprintf(`max(target:replayd_generation_tokens_per_joule:ratio_rate5m{%s}%s)`, onTarget, offset)
	}, "tokens per joule")
	clock := figures(`replayd_gpu_sm_clock_hertz{}`)
	held := func(series string) string {
		return fmt.Sprintf(`max by (reason) (%s)`, strings.ReplaceAll(series, "{}", "{"+onTarget+`,reason!~"idle|low_utilization"}`))
	}
	first = []*panel{
		timeseries("GPU power and its limit", "watt",
			"Power of each GPU and its enforced limit, if the source has it. At the limit the clocks fall, and prefill and decode are slower: raise the limit, or expect it at this load. Low power while requests wait: the GPU is not the bottleneck.",
			"ReplaydGPUThrottled",
			query{figures(`replayd_gpu_power_watts{}`), gpuName},
			query{`min(` + figures(`replayd_gpu_power_limit_enforced_watts{} or replayd_gpu_power_limit_watts{}`) + `)`, "limit"}).
			set(object{"min": 0}).custom(object{"fillOpacity": 0}).dashed("^limit$", "red"),
	}
	more = []*panel{
		timeseries("GPU utilization", "percentunit",
			"Average over the target's GPUs of SM activity, tensor activity and DRAM activity. Prefill uses the tensor cores, decode the DRAM. A GPU with MIG instances counts with its busiest one. TTFT up and all of them low: the GPU waits for its host, another rank or PCIe. Without profiling metrics there is only utilization, the time in which any kernel ran, which is near 100 % at any load.",
			"How to read this",
			query{activity("sm_active_ratio"), "SM"}, query{activity("tensor_active_ratio"), "tensor"}, query{activity("dram_active_ratio"), "DRAM"},
			query{activity("utilization_ratio") + " unless " + activity("sm_active_ratio"), "utilization"}).
			set(object{"min": 0, "max": 1}).colored("^SM$", green).colored("^tensor$", "yellow").colored("^DRAM$", purple).colored("^utilization$", "text"),
		timeseries("GPU clock and throttling", "percentunit",
			"SM clock of each GPU as a fraction of its maximum in the time range, and the fraction of time for which each reason throttled it, on the worst GPU. Lower clocks with a reason: power limit or heat; check the limit, the fans and the neighbors. Lower clocks without a reason: the GPU is idle, or the source has no reasons.",
			"ReplaydGPUThrottled",
			query{clock + ` / ` + figures(`max_over_time(replayd_gpu_sm_clock_hertz{}[$__range] @ end())`), "clock of " + gpuName},
			query{`clamp_max(` + held(`rate(replayd_gpu_throttle_seconds_total{}[$__rate_interval])`) +
				` or ` + held(`rate(replayd_gpu_violation_seconds_total{}[$__rate_interval])`) +
				` or ` + held(`replayd_gpu_throttle_reason{}`) + `, 1)`, "throttled: {{reason}}"}).
			set(object{"min": 0, "max": 1}).custom(object{"fillOpacity": 0}).override("/^throttled/", "custom.fillOpacity", 40),
		timeseries("GPU temperature", "celsius",
			"Temperature of each GPU and of its memory. Above about 85 °C (memory about 95 °C) boards lower their clocks: check the airflow and the neighbors.",
			"ReplaydGPUThrottled",
			query{figures(`replayd_gpu_temperature_celsius{}`), gpuName},
			query{figures(`replayd_gpu_memory_temperature_celsius{} > 0`), "memory of " + gpuName}).
			redFrom(85).custom(object{"axisSoftMin": 20, "axisSoftMax": 90, "fillOpacity": 0}),
		timeseries("GPU memory used", "bytes",
			"Memory in use on all GPUs of the target. Engines allocate their memory at the start and keep it: a change under load is another process on the GPU, or a restart of the engine. KV cache usage is above.",
			"How to read this",
			query{`sum(` + memory(`replayd_gpu_memory_used_bytes{}`) + `)`, "used"},
			query{`sum(` + memory(`replayd_gpu_memory_total_bytes{}`) + ` or ` + memory(`replayd_gpu_memory_used_bytes{} + replayd_gpu_memory_free_bytes{}`) + `)`, "there is"}).
			set(object{"min": 0}).dashed("^there is$", "text"),
		timeseries("Output tokens per joule", "suffix:tokens/J",
			"Output tokens of the engine ÷ energy of the target's GPUs, over 5 minutes. Pale: before. Lower at the same load: throttling, fewer prefix cache hits or smaller batches. A low load always gives less, since idle power counts too.",
			"ReplaydEnergyOutOfLine", perJoule...).set(object{"min": 0}).colored("^tokens per joule$", green).paleBefore(),
		timeseries("Energy per request", "joule",
			"Energy of the target's GPUs ÷ finished requests, over 5 minutes. Longer answers need more energy; at the same place of the trace it should be the same. Counted by the client, it includes the energy for other clients.",
			"ReplaydEnergyOutOfLine", query{fmt.Sprintf(`max by (counted_by) (target:replayd_joules_per_request:ratio_rate5m{%s})`, onTarget), "requests counted by the {{counted_by}}"}).
			set(object{"min": 0}),
		timeseries("GPU hardware errors", "none",
			"Last XID error of each GPU (0: none; it stays until the next one), uncorrected memory errors, and memory rows to be remapped. Above 0: the runbook explains each XID, and whether the engine, the GPU or the node must be restarted. The kernel log has the errors before it.",
			"ReplaydGPUXid",
			query{figures(`replayd_gpu_last_xid{}`), "last XID of " + gpuName},
			query{figures(risen(`replayd_gpu_ecc_double_bit_volatile_total{}`, "$__rate_interval")) + ` > 0`, "memory errors of " + gpuName},
			query{figures(`replayd_gpu_row_remap_pending{} > 0 or replayd_gpu_row_remap_failed{} > 0`), "rows to replace of " + gpuName}).
			set(object{"min": 0, "decimals": 0}).redFrom(1).custom(object{"axisSoftMax": 2, "lineInterpolation": "stepAfter"}),
	}
	return first, more
}

// memory is a figure of whole GPUs, which includes their MIG instances.
func memory(expr string) string {
	return strings.ReplaceAll(figures(expr), onTarget, onTarget+`,mig_instance=""`)
}
