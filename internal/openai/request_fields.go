package openai

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/config"
	"github.com/valyala/fasthttp"
	"golang.org/x/net/http/httpguts"
)

// RequestFields mark requests, so that a server or a gateway can treat them differently from those of its users. They replace
// the same fields in http_headers, extra_body, a row's own extra and a payload. The zero value sets none.
// docs/how-to/keep-apart.md says what each engine does with them.
type RequestFields struct {
	CacheSalt string            // the body's cache_salt; "" for none
	User      string            // the body's user; "" for none
	Headers   map[string]string // header lines that CheckHeader has accepted; no error text shows the secret ones

	Own map[string]string // those of the row, likewise, which have no {session}

	Session      string // replaces {session} in Headers
	SessionField string // key of the body whose value is Session, accepted by CheckSessionField; "" for none
}

func (m *RequestFields) fields() []field {
	var fields []field
	if m.CacheSalt != "" {
		fields = append(fields, field{key: "cache_salt", value: quote(m.CacheSalt)})
	}
	if m.User != "" {
		fields = append(fields, field{key: "user", value: quote(m.User)})
	}
	if m.SessionField != "" {
		fields = append(fields, field{key: m.SessionField, value: quote(m.Session)})
	}
	return fields
}

// setHeaders sets the lines and replaces others of the same names.
func (m *RequestFields) setHeaders(h *fasthttp.RequestHeader) {
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) { // the same bytes every time
		h.Del(name)
		h.Add(name, strings.ReplaceAll(m.Headers[name], SessionMark, m.Session))
	}
	for _, name := range slices.Sorted(maps.Keys(m.Own)) {
		h.Set(name, m.Own[name])
	}
}

// maxHeaderValue bounds a header, in bytes: servers refuse a head of more than 8 to 16 KiB.
const maxHeaderValue = 1 << 10

// CheckHeader returns why a header is refused: the name is invalid or belongs to the message itself, or the value would end the
// line, or names something else than {session} in braces. The text does not repeat the value, which may be secret.
func CheckHeader(name, value string) error {
	if !httpguts.ValidHeaderFieldName(name) || len(name) > maxHeaderValue {
		return fmt.Errorf("want a header name, got %q", name[:min(len(name), 64)])
	}
	name = http.CanonicalHeaderKey(name)
	_, reserved := config.ReservedHeaders[name]
	switch {
	case name == "Authorization" || name == "Proxy-Authorization" || name == "Cookie":
		return errors.New("want no credentials here: they are the target's http")
	case reserved || slices.Contains(ownHeaders, name):
		return fmt.Errorf("%s is set by replayd", name)
	}
	if err := CheckValue(value); err != nil {
		return err
	}
	return checkMarks(value)
}

// CheckValue returns why the value of a header is refused. The text does not repeat it.
func CheckValue(value string) error {
	switch {
	case value == "" || len(value) > maxHeaderValue:
		return fmt.Errorf("want a value of 1 to %d bytes, got %d", maxHeaderValue, len(value))
	case strings.Trim(value, " ") != value || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
		return errors.New("want printable ASCII, without a space at either end")
	}
	return nil
}

// SessionMark stands for the id of the session in the value of a request header.
const SessionMark = "{session}"

// checkMarks returns why the braces in a header's value are refused. Those of a JSON object stand for themselves.
func checkMarks(value string) error {
	for {
		_, after, found := strings.Cut(value, "{")
		if !found {
			return nil
		}
		json := strings.TrimLeft(after, " ")
		if !strings.HasPrefix("{"+after, SessionMark) && !strings.HasPrefix(json, `"`) && !strings.HasPrefix(json, "}") {
			return errors.New("want " + SessionMark + ", or braces of a JSON object, got other braces")
		}
		value = after
	}
}

// NamesSession reports whether requests carry the id of their session.
func (m *RequestFields) NamesSession() bool {
	if m.SessionField != "" {
		return true
	}
	for _, value := range m.Headers {
		if strings.Contains(value, SessionMark) {
			return true
		}
	}
	return false
}

var bodyKey = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// ownFields are keys of the body that replayd sets to something else than a text of the user's choice.
var ownFields = []string{
	"model", "messages", "prompt", "tools", "stream", "stream_options", "max_tokens", "max_completion_tokens", "min_tokens", "ignore_eos",
}

// CheckSessionField returns why no session's id can be sent under a key of the body.
func CheckSessionField(key string) error {
	switch {
	case !bodyKey.MatchString(key):
		return errors.New("want 1 to 64 of A-Z a-z 0-9 _ . -")
	case slices.Contains(ownFields, key):
		return fmt.Errorf("%s is set by replayd", key)
	}
	return nil
}
