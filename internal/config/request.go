package config

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"replayd/internal/openai"
	"replayd/internal/synth"
)

// Request holds request fields that distinguish a workload's requests from those of the target's users; docs/how-to/sidecar.md
// explains their use.
type Request struct {
	Priority  *Integer          `koanf:"priority"`   // nil: not sent
	CacheSalt string            `koanf:"cache_salt"` // as prompt.salt; empty: not sent
	User      string            `koanf:"user"`
	Headers   map[string]string `koanf:"headers"`
}

// Limits of the fields that every request carries.
const (
	maxRequestHeaders = 16
	maxRequestUser    = 256 // bytes
)

func (m Request) check(at string, f *Faults) {
	if m.CacheSalt != "" {
		if err := synth.Salt(m.CacheSalt).Check(); err != nil {
			f.add(at+".cache_salt", "%v", err)
		}
	}
	if len(m.User) > maxRequestUser {
		f.add(at+".user", "want at most %d bytes, got %d", maxRequestUser, len(m.User))
	}
	if len(m.Headers) > maxRequestHeaders {
		f.add(at+".headers", "want at most %d headers, got %d", maxRequestHeaders, len(m.Headers))
		return
	}
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		key := at + ".headers"
		if !strings.ContainsFunc(name, unicode.IsControl) { // a fault must be one line
			key = join(key, name)
		}
		if err := openai.CheckHeader(name, m.Headers[name]); err != nil {
			f.add(key, "%v", err)
		}
		canonical := http.CanonicalHeaderKey(name)
		if first, ok := seen[canonical]; ok {
			f.add(key, "want each header once, got %s and %s", first, name)
		}
		seen[canonical] = name
	}
}
