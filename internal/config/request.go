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
	Headers   map[string]string `koanf:"headers"` // {session} in a value is the id of the session

	SessionField string `koanf:"session_field"` // key of the body that has the id of the session; empty: none
	EchoHeader   string `koanf:"echo_header"`   // header of answers that later requests of the session send back; empty: none
}

// SessionMark stands for the id of the session in the value of a request header.
const SessionMark = openai.SessionMark

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
	m.checkSession(at, f)
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
	if m.EchoHeader != "" {
		if name, ok := seen[openai.EchoedAs(m.EchoHeader)]; ok {
			f.add(at+".echo_header", "contradicts headers.%s: want one of them", name)
		}
	}
}

// checkSession checks the keys by which a router recognizes a session.
func (m Request) checkSession(at string, f *Faults) {
	switch key := m.SessionField; {
	case key == "":
	case key == "user" && m.User != "" || key == "cache_salt" && m.CacheSalt != "":
		f.add(at+".session_field", "contradicts %s: want one of them", key)
	default:
		if err := openai.CheckSessionField(key); err != nil {
			f.add(at+".session_field", "%v", err)
		}
	}
	if m.EchoHeader != "" {
		if err := openai.CheckEcho(m.EchoHeader); err != nil {
			f.add(at+".echo_header", "%v", err)
		}
	}
}

// checkAgainst checks the header that is sent back against those of the target.
func (m Request) checkAgainst(path string, t *Target, f *Faults) {
	if m.EchoHeader == "" {
		return
	}
	if name := openai.HeaderSet(t.HTTP.HTTPHeaders, openai.EchoedAs(m.EchoHeader)); name != "" {
		f.add(path, "contradicts http.http_headers.%s of target %q: want one of them", name, t.Name)
	}
}
