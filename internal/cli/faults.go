package cli

import (
	"errors"
	"strings"

	"replayd/internal/config"
	"replayd/internal/secret"
)

// flagOf maps keys of the configuration to flags, for errors.
var flagOf = map[string]string{
	"targets[0].url": "--url", "targets[0].per_chunk_usage": "--per-chunk-usage", "targets[0].api": "--api", "targets[0].output": "--output",
	"targets[0].timeouts.connect": "--timeout-connect", "targets[0].timeouts.first_token": "--timeout-first-token",
	"targets[0].timeouts.stall": "--timeout-stall", "targets[0].timeouts.total": "--timeout-total",
	"workloads[0].name": "--name", "workloads[0].trace.path": "TRACE", "workloads[0].trace.format": "--format",
	"workloads[0].trace.block_tokens": "--block-tokens", "workloads[0].trace.from": "--from", "workloads[0].trace.to": "--to",
	"workloads[0].trace.max_input": "--max-input", "workloads[0].trace.max_output": "--max-output",
	"workloads[0].trace.over_limit": "--over-limit", "workloads[0].arrival": "--arrival", "workloads[0].speed": "--speed",
	"workloads[0].turn_delay.scale": "--turn-delay-scale", "workloads[0].turn_delay.max": "--turn-delay-max",
	"workloads[0].slo.session.makespan": "--slo-session", "workloads[0].lanes": "--lanes", "workloads[0].overload": "--overload", "workloads[0].max_wait": "--max-wait",
	"workloads[0].prompt.form": "--prompt", "workloads[0].prompt.words": "--words", "workloads[0].prompt.salt": "--salt",
	"workloads[0].trace.max_context": "--max-context", "workloads[0].rate": "--rate", "workloads[0].burstiness": "--burstiness",
	"workloads[0].warmup.requests": "--warmup", "workloads[0].cancel.ratio": "--cancel", "workloads[0].cancel.after": "--cancel-after",
	"workloads[0].rate_of": "--rate-of", "workloads[0].sessions_at_once": "--sessions-at-once", "workloads[0].start_within": "--start-within",
	"workloads[0].users": "--num-users", "workloads[0].synthetic.input_tokens": "--isl", "workloads[0].synthetic.input_stddev": "--isl-stddev",
	"workloads[0].synthetic.output_tokens": "--osl", "workloads[0].synthetic.output_stddev": "--osl-stddev",
	"workloads[0].synthetic.lengths": "--sequence-distribution", "workloads[0].synthetic.system_tokens": "--shared-system-prompt-length",
	"workloads[0].synthetic.turns": "--session-turns-mean", "workloads[0].synthetic.turns_stddev": "--session-turns-stddev",
	"workloads[0].synthetic.turn_delay": "--session-turn-delay-mean", "workloads[0].synthetic.turn_delay_stddev": "--session-turn-delay-stddev",
	"workloads[0].synthetic.requests": "--request-count", "workloads[0].synthetic": "--isl",
	"workloads[0].rows": "--requests", "workloads[0].duration": "--duration", "workloads[0].prompt.history": "--history",
	"workloads[0].request.session_field": "--session-field", "workloads[0].request.echo_header": "--echo-header",
	"targets[0].replica_header": "--replica-header",
	"targets[0].tokenizer":      "--tokenizer", "workloads[0].dataset": "--tokenizer", "workloads[0].dataset.path": "--dataset-path", "workloads[0].dataset.format": "--custom-dataset-type",
	"workloads[0].shard.index": "--shard", "workloads[0].shard.of": "--shard", "web.listen": "--web.listen-address", "max_waiting": "--max-waiting",
}

// aliasOf maps keys to another program's flags, if they differ from flagOf.
var aliasOf = map[Spelling]map[string]string{
	AIPerf: {
		"workloads[0].trace.path": "--input-file", "workloads[0].trace.format": "--custom-dataset-type", "workloads[0].dataset.path": "--input-file",
		"workloads[0].rate": "--request-rate", "workloads[0].burstiness": "--arrival-smoothness", "workloads[0].warmup.requests": "--warmup-request-count",
		"workloads[0].cancel.ratio": "--request-cancellation-rate", "workloads[0].cancel.after": "--request-cancellation-delay",
		"workloads[0].start_within":     "--trajectory-start-min-ratio",
		"workloads[0].turn_delay.scale": "--conversation-turn-delay-ratio",
		"targets[0].timeouts.total":     "--request-timeout-seconds", "targets[0].api": "--endpoint-type",
		"workloads[0].arrival": "--fixed-schedule", "workloads[0].request.headers": "--header", "workloads[0].lanes": "--concurrency",
	},
	TraceReplay: {"workloads[0].trace.path": "--trace-path", "workloads[0].dataset.format": "--dataset-name", "targets[0].url": "--host"},
}

// flagOf returns the flag for a key.
func (o *Flags) flagOf(key string, who Spelling) string {
	if name := aliasOf[who][key]; name != "" {
		return name
	}
	if name := flagOf[key]; name != "" {
		return name
	}
	if rest, ok := strings.CutPrefix(key, "workloads[0].slo."); ok {
		return "--goodput: " + rest
	}
	if rest, ok := strings.CutPrefix(key, "targets[0].http."); ok {
		return "--http.config.file: " + rest
	}
	if rest, ok := strings.CutPrefix(key, "workloads[0].request.headers."); ok {
		if rest == o.sessionHeader {
			return "--session-header"
		}
		return "--header: " + rest
	}
	return key
}

// ByFlag returns the faults found when the files were opened, with their flags. A fault in a file already names its
// place.
func (o *Flags) ByFlag(found config.Faults, who Spelling) error {
	var errs []error
	for _, f := range found {
		text := secret.InAddresses(f.Want)
		if f.Path != "workloads[0].trace.path" && f.Path != "workloads[0].dataset.path" {
			text = o.flagOf(f.Path, who) + ": " + text
		}
		errs = append(errs, errors.New(text))
	}
	return errors.Join(errs...)
}
