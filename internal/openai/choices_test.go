package openai

import (
	"encoding/json"
	"strings"
	"testing"
)

// A row asks for several choices by its last word on n: that of its extra, of extra_body, of its payload.
func TestSeveral(t *testing.T) {
	for _, c := range []struct {
		payload, extra string
		body           map[string]any
		want           bool
	}{
		{"", "", nil, false},
		{`{"n":2}`, "", nil, true},
		{`{"n": 1}`, "", nil, false},
		{`{"n":null}`, "", nil, false},
		{`{"n":"2"}`, "", nil, true},
		{`{"n":2.0}`, "", nil, true},
		{`{"messages":[{"n":2}],"name":"n"}`, "", nil, false},
		{`{"n":3`, "", nil, false},
		{"", `{"n":2}`, nil, true},
		{`{"n":2}`, `{"n":1}`, nil, false},
		{`{"n":2}`, "", map[string]any{"n": 1}, false},
		{`{"n":1}`, `{"n":2}`, map[string]any{"n": 1}, true},
	} {
		client := newClient(t, Target{Options: Options{ExtraBody: c.body}})
		if got := client.Several(json.RawMessage(c.payload), json.RawMessage(c.extra)); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
	for _, n := range []any{2, 2.0, uint64(3), "2", json.Number("4")} {
		o := Options{URL: "h", API: Chat, Output: OutputExact, ExtraBody: map[string]any{"n": n}}
		if f := o.Check(); f.Err() == nil || !strings.HasPrefix(f.Error(), "extra_body.n: want 1, got ") {
			t.Errorf("%v: got %v", n, f)
		}
	}
}
