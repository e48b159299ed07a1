package config

import (
	"regexp"
	"strings"

	"replayd/internal/fault"
	"replayd/internal/spelling"
)

// removedKeys says of keys that were removed, without list indices, what holds now.
var removedKeys = map[string]string{
	"max_waiting":                           "waiting requests take at most 64 MiB",
	"state.max_bytes":                       "a state file of more than 64 MiB is not read",
	"targets.metrics.map.engine":            everyEngine,
	"targets.metrics.map.type":              ownType,
	"targets.metrics.map.scale":             "a figure is taken as it is, in seconds, tokens or 0 to 1",
	"targets.metrics.map.take":              ownType,
	"targets.metrics.map.select":            allSamples,
	"targets.metrics.map.prefer":            allSamples,
	"targets.metrics.map.merge":             allSamples,
	"targets.metrics.map.rank":              allSamples,
	"targets.metrics.map.less":              oneFamily,
	"targets.metrics.map.plus":              oneFamily,
	"workloads.synthetic.input_stddev":      deviation,
	"workloads.synthetic.output_stddev":     deviation,
	"workloads.synthetic.turns_stddev":      "conversations have equally many turns; run has --session-turns-stddev",
	"workloads.synthetic.turn_delay_stddev": "all delays are the same; run has --session-turn-delay-stddev",
	"workloads.turn_delay.scale":            "delays are the trace's, up to turn_delay.max; run has --turn-delay-scale",
	"workloads.repeat.gap":                  "a loop may begin right after the last row of another; see every",
	"workloads.prebuild":                    "at most 8 MiB of requests are built before they are due",
	"workloads.slo.session.objective":       "0.9 of the eligible sessions should be good",
	"workloads.request.priority":            "extra_body of the target sends a priority",
	"comparisons.tolerance_tail":            "1 % more much slower requests are a fail; compare has --tolerance-tail",
	"comparisons.tolerance_queued":          "5 % more queued requests are a fail; compare has --tolerance-queued",
	"comparisons.tolerance_bad":             "0.5 % more bad requests are a fail; compare has --tolerance-bad",
	"gpus.profiling":                        "libdcgm reads the profiling fields, too",
	"gpus.select.container":                 "namespace, pod and uuid select GPUs",
	"gpus.select.index":                     "namespace, pod and uuid select GPUs",
}

const (
	everyEngine = "a row is for every engine"
	ownType     = "a family has the type of its figure"
	allSamples  = "a figure is the sum of all samples of its family"
	oneFamily   = "a figure is that of one family"
	deviation   = `lengths have deviations, such as "1000|100,500|50:100"`
)

var listIndex = regexp.MustCompile(`\[[0-9]+\]`)

// unknownKey and removedKey begin the faults of keys without a field.
const (
	unknownKey = "unknown key"
	removedKey = "is no key any more: "
)

// unknownAt is the fault of an unknown key, the last of a path. It says what holds instead of a removed key, and else
// names the nearest of the known keys at that place.
func unknownAt(path, key string, known []string) fault.Fault {
	if now := removedKeys[listIndex.ReplaceAllString(path, "")]; now != "" {
		return fault.Fault{Key: path, Want: removedKey + now}
	}
	return fault.Fault{Key: path, Want: unknownKey + spelling.DidYouMean(key, "", known)}
}

func isUnknown(f fault.Fault) bool {
	return strings.HasPrefix(f.Want, unknownKey) || strings.HasPrefix(f.Want, removedKey)
}
