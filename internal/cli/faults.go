package cli

import (
	"fmt"
	"strings"

	"replayd/internal/fault"
	"replayd/internal/secret"
)

// flagOf returns the flag for a key: the program's own one, unless only replayd's was given.
func (o *Flags) flagOf(key string, who Spelling) string {
	var target int // those behind the first are only read
	if _, err := fmt.Sscanf(key, "targets[%d]", &target); err == nil && target > 0 || strings.HasPrefix(key, "gpus[") {
		if target > 0 && target <= len(o.Aliases.serverMetrics) {
			return "--server-metrics"
		}
		return "--gpu-telemetry"
	}
	if key == "workloads[0].request.headers."+o.sessionHeader {
		return "--session-header"
	}
	row, name := o.tables[who].find(key)
	own, ours := o.tables[Own].find(key)
	if row.Flag == "" || o.given.Changed(own.flag()) && !o.given.Changed(row.flag()) {
		return ours
	}
	return name
}

// fault notes the faults in an error of a flag; nil has none.
func (o *Flags) fault(flag string, err error) {
	o.wrong = append(o.wrong, under(flag, err)...)
}

// under returns the faults in an error with a flag in front of each.
func under(flag string, err error) fault.List {
	return fault.Of(err).Named(func(key string) string { return strings.TrimSuffix(flag+": "+key, ": ") })
}

// ByFlag returns the faults found when the files were opened, with their flags.
func (o *Flags) ByFlag(found fault.List, who Spelling) error {
	return shown(found, func(key string) string { return o.flagOf(key, who) })
}

// shown returns faults under the names of flags. A fault in a file already names its place.
func shown(found fault.List, flagOf func(key string) string) error {
	named := found.Named(func(key string) string {
		if key == "workloads[0].trace.path" || key == "workloads[0].dataset.path" {
			return ""
		}
		return flagOf(key)
	})
	for i := range named {
		named[i].Want = secret.InAddresses(named[i].Want)
	}
	return named.Err()
}
