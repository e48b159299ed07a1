package config

import (
	"regexp"
	"strings"

	"replayd/internal/fault"
	"replayd/internal/spelling"
)

// renamedKeys maps old keys, without list indices, to their new names. docs/reference/configuration.md has the new keys.
var renamedKeys = map[string]string{
	"workloads.mark":             "request",
	"workloads.ahead":            "prebuild",
	"workloads.prompt.carry":     "history",
	"workloads.repeat.phase":     "align, and wall is wall_clock",
	"workloads.guard.when_blind": "on_missing_metrics",
}

var listIndex = regexp.MustCompile(`\[[0-9]+\]`)

// unknownKey begins the fault of a key without a field.
const unknownKey = "unknown key"

// unknownAt is the fault of an unknown key, the last of a path. It names the new key of a renamed one, and else the nearest of the known
// keys at that place.
func unknownAt(path, key string, known []string) fault.Fault {
	if now := renamedKeys[listIndex.ReplaceAllString(path, "")]; now != "" {
		return fault.Fault{Key: path, Want: unknownKey + ": it is called " + now}
	}
	return fault.Fault{Key: path, Want: unknownKey + spelling.DidYouMean(key, "", known)}
}

// isUnknown reports whether f is the fault of an unknown key.
func isUnknown(f fault.Fault) bool { return strings.HasPrefix(f.Want, unknownKey) }
