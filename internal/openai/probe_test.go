package openai

import (
	"errors"
	"log/slog"
	"net"
	"slices"
	"testing"

	"replayd/internal/measure"
)

// The state of the target after each of several probes and requests.
func TestProbeNews(t *testing.T) {
	const (
		one  = `{"data":[{"id":"a"}]}`
		two  = `{"data":[{"id":"a"},{"id":"b"}]}`
		next = `{"data":[{"id":"c"}]}`
	)
	list := one // "" closes the connection
	c := newClient(t, Target{})
	over(t, c, func(_ int, conn net.Conn) {
		if _, _, err := request(conn); err == nil && list != "" {
			send(conn, jsonAnswer(list))
		}
		_ = conn.Close()
	})
	var names []string
	p := &Probe{Client: c, Patient: true, Named: func(name string) { names = append(names, name) }, Log: slog.New(slog.DiscardHandler)}
	lists := func(text string) func() (News, error) {
		return func() (News, error) { list = text; return p.Look(t.Context()) }
	}
	ended := func(o measure.Outcome, status int) func() (News, error) {
		return func() (News, error) { return p.Ended(&measure.Request{Outcome: o, Status: status, Error: "gone"}), nil }
	}
	for _, step := range []struct {
		name     string
		do       func() (News, error)
		news     News
		err      error
		nameless bool
		answer   Answer
	}{
		{"a list of two at first", lists(two), News{Heard: true}, ErrSeveralModels, true, Answer{Reached: true}},
		{"one model", lists(one), News{Heard: true, Chosen: true}, nil, false, Answer{Reached: true}},
		{"the same again", lists(one), News{Heard: true}, nil, false, Answer{Reached: true}},
		{"a request before it is up", ended(measure.OK, 200), News{Heard: true, Well: true}, nil, false, Answer{Reached: true}},
		{"measured", func() (News, error) { return News{}, p.Measure(t.Context()) }, News{}, nil, false, Answer{true, true, "a"}},
		{"a request", ended(measure.OK, 200), News{Heard: true}, nil, false, Answer{true, true, "a"}},
		{"one that says nothing", ended(measure.TimeoutTotal, 0), News{}, nil, false, Answer{true, true, "a"}},
		{"a list of two later", lists(two), News{Heard: true}, nil, false, Answer{true, true, "a"}},
		{"a model without a name", lists(`{"data":[{}]}`), News{Heard: true}, nil, false, Answer{true, true, "a"}},
		{"another model", lists(next), News{Heard: true, Changed: true}, nil, false, Answer{true, true, "a"}},
		{"no connection", ended(measure.ConnectFailed, 0), News{Heard: true}, nil, false, Answer{Text: "gone"}},
		{"an error", ended(measure.HTTP5xx, 503), News{Heard: true, Back: true}, nil, false, Answer{Reached: true, Text: "gone"}},
		{"no answer", lists(""), News{Heard: true}, ErrNoAnswer, false, Answer{Text: "gone"}},
		{"an answer", lists(next), News{Heard: true, Back: true}, nil, false, Answer{Reached: true, Text: "gone"}},
	} {
		news, err := step.do()
		if news != step.news || !errors.Is(err, step.err) || (err == nil) != (step.err == nil) {
			t.Errorf("%s: want %+v and %v, got %+v and %v", step.name, step.news, step.err, news, err)
		}
		if nameless := p.Nameless() != nil; nameless != step.nameless || p.Answer() != step.answer {
			t.Errorf("%s: want nameless %v and %+v, got %v and %+v", step.name, step.nameless, step.answer, nameless, p.Answer())
		}
	}
	if !slices.Equal(names, []string{"a", "c"}) {
		t.Errorf("heard the names %q", names)
	}
}
