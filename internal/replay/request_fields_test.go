package replay

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/internal/schedule"
	"replayd/internal/synth"
	"replayd/internal/trace"
)

// Every kind of row carries the request fields. The salt decides whether cache_salt differs per loop, is constant or is
// absent.
func TestRequestFields(t *testing.T) {
	type fields struct {
		Salt *string `json:"cache_salt"`
		User string
	}
	for _, c := range []struct {
		salt  synth.Salt
		salts int // distinct values in two loops of three rows
	}{{"", 0}, {synth.SaltNone, 0}, {"fixed:a", 1}, {synth.SaltLoop, 2}, {synth.SaltSession, 6}} {
		t.Run(string(c.salt), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{}
				src := source0(
					trace.Record{InputTokens: 5},
					trace.Record{Text: "own", Extra: json.RawMessage(`{"user":"row"}`)},
					trace.Record{Payload: json.RawMessage(`{"prompt":"p","user":"row"}`)},
				)
				loops := schedule.Options{Repeat: schedule.Repeat{Mode: schedule.Loops, Align: schedule.Start, Every: time.Minute}}
				b := newBench(t, src, loops, f, func(w *Workload) {
					w.Request = RequestFields{User: "replay", CacheSalt: c.salt}
					w.Rows = 6
				})
				b.run(t, t.Context(), t.Context())
				want(t, "bodies", len(f.bodies)-1, 6) // one body is that of the model list request
				salts := map[string]int{}
				for id, body := range f.bodies {
					if id == "" {
						continue
					}
					var m fields
					if err := json.Unmarshal(body, &m); err != nil {
						t.Fatal(err)
					}
					if m.User != "replay" {
						t.Errorf("%s: want the user replay, got %s", id, body)
					}
					if m.Salt != nil {
						salts[*m.Salt]++
					}
				}
				want(t, "salts", len(salts), c.salts)
				for salt, n := range salts {
					want(t, "rows with salt "+salt, n, 6/c.salts)
				}
			})
		})
	}
}

// Each fault names its key.
func TestRequestFieldsCheck(t *testing.T) {
	headers := func(n int) map[string]string {
		all := map[string]string{}
		for i := range n {
			all[fmt.Sprintf("X-%d", i)] = "a"
		}
		return all
	}
	for _, c := range []struct {
		request RequestFields
		want    string // the only fault; "": none
	}{
		{RequestFields{}, ""},
		{RequestFields{CacheSalt: "none"}, ""},
		{RequestFields{CacheSalt: "fixed:a", User: strings.Repeat("u", maxRequestUser), Headers: headers(maxRequestHeaders)}, ""},
		{RequestFields{CacheSalt: "Loop"}, `w.request.cache_salt: want loop, session, none or fixed:NAME, got "Loop"`},
		{RequestFields{User: strings.Repeat("u", maxRequestUser+1)}, "w.request.user: want at most 256 bytes, got 257"},
		{RequestFields{Headers: headers(maxRequestHeaders + 1)}, "w.request.headers: want at most 16 headers, got 17"},
		{RequestFields{Headers: map[string]string{"a\nb": "c"}}, `w.request.headers: want a header name, got "a\nb"`},
		{RequestFields{
			Headers: map[string]string{"X-A": "a-{session}"}, SessionField: "session_id",
			EchoHeader: "x-session-token",
		}, ""},
		{RequestFields{SessionField: "user", EchoHeader: "set-cookie"}, ""},
		{
			RequestFields{Headers: map[string]string{"X-A": "{loop}"}},
			"w.request.headers.X-A: want {session}, or braces of a JSON object, got other braces",
		},
		{RequestFields{SessionField: "model"}, "w.request.session_field: model is set by replayd"},
		{RequestFields{SessionField: "user", User: "a"}, "w.request.session_field: contradicts user: want one of them"},
		{
			RequestFields{SessionField: "cache_salt", CacheSalt: "loop"},
			"w.request.session_field: contradicts cache_salt: want one of them",
		},
		{RequestFields{EchoHeader: "x y"}, `w.request.echo_header: want a header name, got "x y"`},
		{RequestFields{EchoHeader: "cookie"}, "w.request.echo_header: want no credentials here: they are the target's http"},
		{
			RequestFields{Headers: map[string]string{"x-a": "a"}, EchoHeader: "X-A"},
			"w.request.echo_header: contradicts headers.x-a: want one of them",
		},
	} {
		got := ""
		for _, f := range c.request.Check().Under("w.request") {
			got += f.Key + ": " + f.Want
		}
		if got != c.want {
			t.Errorf("%+v: want %q, got %q", c.request, c.want, got)
		}
	}
}

// A row that asks for several choices is left out, counted as filtered, and the log says so once.
func TestSeveralChoices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw := func(s string) json.RawMessage { return json.RawMessage(s) }
		b := newBench(t, source(trace.Record{Extra: raw(`{"n":2}`)}, trace.Record{Extra: raw(`{"n":1}`)},
			trace.Record{Payload: raw(`{"prompt":"a","n":3}`)}, trace.Record{}), closedOnce, &fake{}, nil)
		b.run(t, t.Context(), t.Context())
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 2})
		want(t, "filtered", b.count.Ledger().Filtered, int64(2))
	})
}
