package daemon

import (
	"regexp"
	"strings"

	"replayd/internal/config"
)

// faultsAt returns the faults of a key in an error, one per line.
func faultsAt(path string, err error) (faults config.Faults) {
	if err == nil {
		return nil
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		faults = append(faults, config.Fault{Path: path, Want: line})
	}
	return faults
}

// option matches the name of an option at the begin of an error: every, http.tls_config, stages[0].rate.
var option = regexp.MustCompile(`^[a-z_]+(\[[0-9]+\]|\.[A-Za-z0-9_-]+)*$`)

// faultsOf returns the faults of the options below a key in an error, one per line: OPTION: want X, got Y. keys maps options to
// keys where the names differ.
func faultsOf(path string, err error, keys map[string]string) (faults config.Faults) {
	for _, f := range faultsAt(path, err) {
		name, want, ok := strings.Cut(f.Want, ": ")
		if key := keys[name]; ok && key != "" {
			f = config.Fault{Path: path + "." + key, Want: want}
		} else if ok && option.MatchString(name) {
			f = config.Fault{Path: path + "." + name, Want: want}
		}
		faults = append(faults, f)
	}
	return faults
}
