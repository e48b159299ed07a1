package config

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"replayd/internal/fault"
	"replayd/internal/spelling"
)

// envKeys lists the keys that environment variables can set: all keys outside lists.
var envKeys = []string{
	"web.listen", "web.config_file", "web.enable_lifecycle", "web.enable_pprof", "web.max_connections",
	"web.allowed_hosts", "web.external_url", "web.runbook_url", "web.dashboards_url", "drain", "exit_when_done", "records.path", "records.max_bytes", "records.keep", "records.gzip", "state.path",
}

// ofService matches variables that Kubernetes and Docker links set for a service named replayd, without the name.
var ofService = regexp.MustCompile(`^(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT|PORT_[0-9]+_(TCP|UDP|SCTP)(_.*)?)$`)

// nearestVariable returns the variable of a key that is spelled most alike, and by how many letters it differs. It takes _ for __.
func nearestVariable(name string) (nearest string, edits int) {
	plain := func(name string) string { return strings.ReplaceAll(name, "__", "_") }
	edits = math.MaxInt
	for _, key := range envKeys {
		of := "REPLAYD_" + strings.ToUpper(strings.ReplaceAll(key, ".", "__"))
		if n := spelling.Distance(plain(name), plain(of)); n < edits {
			nearest, edits = of, n
		}
	}
	return nearest, edits
}

// environment sets the keys that variables give, and calls ignored for each other variable with the prefix REPLAYD_. One that differs from
// that of a key by two letters at most is a fault.
func (p *Places) environment(environ []string, set func(key, value, by string), ignored func(said string)) (misspelled fault.List) {
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		of, ours := strings.CutPrefix(name, "REPLAYD_")
		key := strings.ToLower(strings.ReplaceAll(of, "__", "."))
		near, edits := nearestVariable(name)
		switch {
		case !ours || ofService.MatchString(of):
		case slices.Contains(envKeys, key):
			set(key, value, name)
		case edits <= 2:
			p.named[name] = name
			misspelled.Add(name, "unknown variable (did you mean %s?)", near)
		case edits <= len(of)/3:
			ignored(name + " (did you mean " + near + "?)")
		default:
			ignored(name)
		}
	}
	return misspelled
}
