package openai

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCheckMarks(t *testing.T) {
	const bad = "want {session}, or braces of a JSON object, got other braces"
	for value, want := range map[string]string{
		"a":                          "",
		"{session}":                  "",
		"run-{session}-a":            "",
		"{session}{session}":         "",
		`{"a":{"b":1},"c":{}}`:       "",
		`{ "session": "{session}" }`: "",
		"}":                          "",
		"{loop}":                     bad,
		"{session":                   bad,
		"{ session }":                bad,
		"{Session}":                  bad,
		"{session} {row}":            bad,
		"{{session}}":                bad,
		"{":                          bad,
	} {
		got := ""
		if err := CheckHeader("X-Session-Id", value); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: want %q, got %q", value, want, got)
		}
	}
}

func TestCheckSessionField(t *testing.T) {
	for key, want := range map[string]string{
		"session_id": "", "user": "", "rid": "", "a.b-c": "",
		"":                      "want 1 to 64 of A-Z a-z 0-9 _ . -",
		"a b":                   "want 1 to 64 of A-Z a-z 0-9 _ . -",
		"a\"":                   "want 1 to 64 of A-Z a-z 0-9 _ . -",
		strings.Repeat("a", 65): "want 1 to 64 of A-Z a-z 0-9 _ . -",
		"model":                 "model is set by replayd",
		"stream_options":        "stream_options is set by replayd",
	} {
		got := ""
		if err := CheckSessionField(key); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: want %q, got %q", key, want, got)
		}
	}
}

// The id is in the headers that name it and under the key of the body, where it replaces what the row has. It is no secret,
// whatever the name of its header.
func TestSessionInARequest(t *testing.T) {
	c := newClient(t, Target{Options: Options{URL: "http://h"}})
	fields := RequestFields{
		Headers: map[string]string{"X-Session-Key": "{session}", "X-A": "a-{session}", "X-Token": "sesame-{session}", "X-B": `{"b":1}`}, Session: "0123456789abcdef", SessionField: "session_id",
	}
	message, err := c.AppendRequest(nil, Body{Prompt: []byte("a"), Extra: json.RawMessage(`{"session_id":"row","n":1}`), Request: fields})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"X-Session-Key: 0123456789abcdef\r\n", "X-A: a-0123456789abcdef\r\n", "X-B: {\"b\":1}\r\n", `"session_id":"0123456789abcdef"`, `"n":1`} {
		if n := strings.Count(string(message), line); n != 1 {
			t.Errorf("want %q once, got it %d times in %q", line, n, message)
		}
	}
	if strings.Contains(string(message), "row") {
		t.Errorf("want the row's own session_id replaced, got %q", message)
	}
	if got, want := c.Redact("sesame-0123456789abcdef"), "<secret>0123456789abcdef"; string(got) != want {
		t.Errorf("want %s, got %s", want, got)
	}
	for want, f := range map[bool]RequestFields{true: fields, false: {Headers: map[string]string{"X-B": `{"b":1}`}}} {
		if got := f.NamesSession(); got != want {
			t.Errorf("%+v: want %v, got %v", f, want, got)
		}
	}
}
