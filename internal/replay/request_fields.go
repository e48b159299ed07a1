package replay

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"replayd/internal/fault"
	"replayd/internal/openai"
	"replayd/internal/synth"
	"replayd/internal/trace"
)

// RequestFields distinguish a workload's requests from those of the target's users; docs/how-to/keep-apart.md explains
// their use. The zero value sets none.
type RequestFields struct {
	CacheSalt synth.Salt        `koanf:"cache_salt"` // which loops share a cache_salt; "" and SaltNone: not sent
	User      string            `koanf:"user"`
	Headers   map[string]string `koanf:"headers"` // openai.SessionMark in a value is the id of the session

	SessionField string `koanf:"session_field"` // key of the body that has the id of the session; empty: none
	EchoHeader   string `koanf:"echo_header"`   // header of answers that later requests of the session send back; empty: none

	Seed uint64 `koanf:"-"` // of the ids of sessions
}

// Limits of the fields that every request carries.
const (
	maxRequestHeaders = 16
	maxRequestUser    = 256 // bytes
)

// at returns the fields of a row's request in a pass of a loop.
func (m *RequestFields) at(workload string, loopStart time.Time, pass int64, r *trace.Record) openai.RequestFields {
	fields := openai.RequestFields{User: m.User, Headers: m.Headers, Own: r.Headers, SessionField: m.SessionField}
	if m.CacheSalt != "" {
		fields.CacheSalt = m.CacheSalt.Text(workload, loopStart, pass, r)
	}
	if fields.NamesSession() {
		fields.Session = synth.SessionID(workload, m.Seed, loopStart, pass, r)
	}
	return fields
}

// Check returns the faults of the fields.
func (m *RequestFields) Check() (f fault.List) {
	if m.CacheSalt != "" {
		if err := m.CacheSalt.Check(); err != nil {
			f.Add("cache_salt", "%v", err)
		}
	}
	f.If(len(m.User) > maxRequestUser, "user", "want at most %d bytes, got %d", maxRequestUser, len(m.User))
	f = append(f, m.checkSession()...)
	if len(m.Headers) > maxRequestHeaders {
		f.Add("headers", "want at most %d headers, got %d", maxRequestHeaders, len(m.Headers))
		return f
	}
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		key := "headers"
		if !strings.ContainsFunc(name, unicode.IsControl) { // a fault must be one line
			key = fault.Join(key, name)
		}
		if err := openai.CheckHeader(name, m.Headers[name]); err != nil {
			f.Add(key, "%v", err)
		}
		canonical := http.CanonicalHeaderKey(name)
		if first, ok := seen[canonical]; ok {
			f.Add(key, "want each header once, got %s and %s", first, name)
		}
		seen[canonical] = name
	}
	if m.EchoHeader != "" {
		if name, ok := seen[openai.EchoedAs(m.EchoHeader)]; ok {
			f.Add("echo_header", "contradicts headers.%s: want one of them", name)
		}
	}
	return f
}

// checkSession checks the keys by which a router recognizes a session.
func (m *RequestFields) checkSession() (f fault.List) {
	switch key := m.SessionField; {
	case key == "":
	case key == "user" && m.User != "" || key == "cache_salt" && m.CacheSalt != "":
		f.Add("session_field", "contradicts %s: want one of them", key)
	default:
		if err := openai.CheckSessionField(key); err != nil {
			f.Add("session_field", "%v", err)
		}
	}
	if m.EchoHeader != "" {
		if err := openai.CheckEcho(m.EchoHeader); err != nil {
			f.Add("echo_header", "%v", err)
		}
	}
	return f
}
