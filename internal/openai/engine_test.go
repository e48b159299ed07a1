package openai

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/secret"
)

// answers returns a client of a server that gives the same answer to every request and stores the request in seen.
func answers(t *testing.T, target Target, answer string, seen *string) *Client {
	t.Helper()
	c := newClient(t, target)
	over(t, c, func(_ int, conn net.Conn) {
		r, body, err := request(conn)
		if err != nil {
			return
		}
		*seen = r.Method + " " + r.URL.Path + " " + body
		send(conn, answer)
		_ = conn.Close()
	})
	return c
}

func jsonAnswer(body string) string {
	return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(body) + bodyEnd
}

func TestModels(t *testing.T) {
	var seen string
	c := answers(t, Target{Options: Options{URL: "http://test/p"}},
		jsonAnswer(`{"object":"list","data":[{"id":"a","owned_by":"vllm","root":"/x"},{"id":"b"}]}`), &seen)
	models, err := c.Models(t.Context())
	if err != nil || len(models) != 2 || models[0] != (Model{"a", "vllm"}) || models[1] != (Model{"b", ""}) {
		t.Errorf("got %+v, %v", models, err)
	}
	if n := c.Answered(); n != 0 {
		t.Errorf("a list of models counts as %d requests that an engine's page must count", n)
	}
	if seen != "GET /p/v1/models " {
		t.Errorf("asked %q", seen)
	}
	for list, want := range map[string][]Model{
		`{"id":"m"},{"id":"m"}`:                                        {{"m", ""}},
		`{"id":"lora","parent":"m"},{"id":"m","parent":null}`:          {{"m", ""}},
		`{"id":"lora","parent":"org/m"},{"id":"m"},{"id":"n"}`:         {{"m", ""}, {"n", ""}},
		`{"id":"a","parent":"org/m"},{"id":"b","parent":"org/m"}`:      {{"a", ""}, {"b", ""}},
		`{"id":"m","parent":"m"},{"id":"m","parent":"m","owned_by":7}`: {{"m", ""}},
	} {
		models, err := answers(t, Target{}, jsonAnswer(`{"data":[`+list+`]}`), &seen).Models(t.Context())
		if err != nil || !slices.Equal(models, want) {
			t.Errorf("%s: want %v, got %v, %v", list, want, models, err)
		}
	}
	for answer, want := range map[string]string{
		jsonAnswer("[]"): "want a JSON list of models",
		"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone":                 "GET http://test:8000/v1/models: http_4xx: HTTP 404: none",
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}":                          "truncated: the answer was cut short",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx":                  "bad_stream: broken chunked encoding",
		"HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat(" ", modelsBytes+1):            "bad_stream: the answer is over 4194304 bytes",
		"HTTP/1.1 200 OK\r\n\r\n{\"data\":" + strings.Repeat(" ", 9000) + "\"a\"": "want a JSON list of models",
		"": "before any byte of an answer",
	} {
		if _, err := answers(t, Target{}, answer, &seen).Models(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: want %q, got %v", answer, want, err)
		}
	}
}

// A client says why it asks for no exact lengths, and whether it should.
func TestNotExact(t *testing.T) {
	const (
		openAI = "by owned_by in its list of models the server is OpenAI's API, which refuses ignore_eos; " +
			"--server (key server) names another"
		tgi = "by owned_by in its list of models the server is one that does not know ignore_eos, such as TGI; " +
			"--server (key server) names another"
	)
	for _, c := range []struct {
		owner  secret.Text
		output OutputMode
		extra  map[string]any
		why    string
	}{
		{"vllm", OutputExact, nil, ""},
		{"", OutputExact, nil, ""},
		{"vllm", OutputMax, nil, "output is max (exact would ask for them): an answer may end before its limit"},
		{"openai", OutputFree, nil, "output is free (exact would ask for them): no limit is sent"},
		{"openai", OutputExact, nil, openAI},
		{"m", OutputExact, nil, tgi},
		{"openai", OutputExact, map[string]any{"ignore_eos": true}, ""},
		{"openai", OutputExact, map[string]any{"ignore_eos": false}, openAI},
		{"vllm", OutputMax, map[string]any{"min_tokens": 5}, ""},
	} {
		client := newClient(t, Target{Options: Options{Output: c.output, ExtraBody: c.extra}})
		if _, err := client.Choose([]Model{{"m", c.owner}}); err != nil {
			t.Fatal(err)
		}
		if why, wanted := client.NotExact(); why != c.why || wanted != (c.output == OutputExact) {
			t.Errorf("%s, %s, %v: want %q, got %q, %v", c.owner, c.output, c.extra, c.why, why, wanted)
		}
	}
}

// A server with other paths than /v1 need have no list of models. A deployment names its model.
func TestNoListOfModels(t *testing.T) {
	const none = "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone"
	for in, want := range map[string]string{
		"http://test/openai/deployments/gpt?api-version=1": "gpt",
		"http://test/api/v3": "model: there is no list of models at http://test/api/v3/models: name one",
		"http://test/v1":     "GET http://test/v1/models: http_4xx: HTTP 404: none",
	} {
		var seen string
		c := answers(t, Target{Options: Options{URL: in}}, none, &seen)
		models, err := c.Models(t.Context())
		if err == nil {
			var m Model
			if m, err = c.Choose(models); err == nil {
				err = errors.New(string(m.ID))
			}
		}
		if err.Error() != want {
			t.Errorf("%s: want %s, got %v", in, want, err)
		}
	}
}

func TestOverhead(t *testing.T) {
	var seen string
	c := answers(t, Target{Options: Options{Model: "m", Output: OutputFree}},
		jsonAnswer(`{"choices":[],"usage":{"prompt_tokens":31,"completion_tokens":1}}`), &seen)
	if n, err := c.Overhead(t.Context()); n != 30 || err != nil {
		t.Errorf("want 30, got %d, %v", n, err)
	}
	if want := `POST /v1/chat/completions {"model":"m","messages":[{"role":"user","content":"about"}],"max_tokens":1}`; seen != want {
		t.Errorf("want %s\n got %s", want, seen)
	}
	for answer, want := range map[string]string{
		jsonAnswer(`{}`): "usage.prompt_tokens: want an integer ≥ 1, got 0",
		jsonAnswer(`{"usage":{"prompt_tokens":10000000000}}`): "want an integer ≥ 1, got 10000000000",
		jsonAnswer(`x`): "want a JSON answer",
		"HTTP/1.1 503 Unavailable\r\n\r\n{\"error\":\"a\"}": "probe http://test:8000: http_5xx: HTTP 503: a",
	} {
		if _, err := answers(t, Target{}, answer, &seen).Overhead(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want %q, got %v", answer, want, err)
		}
	}
}

// A server that refuses any limit on the output is probed without one, if requests have none either.
func TestOverheadWithoutALimit(t *testing.T) {
	for output, want := range map[OutputMode]int{OutputFree: 30, OutputMax: 0} {
		c := newClient(t, Target{Options: Options{Output: output}})
		over(t, c, func(_ int, conn net.Conn) {
			defer conn.Close()
			if _, body, err := request(conn); err != nil || strings.Contains(body, "max_tokens") {
				send(conn, "HTTP/1.1 422 No\r\nContent-Length: 9\r\n\r\nno limits")
			} else {
				send(conn, jsonAnswer(`{"usage":{"prompt_tokens":31}}`))
			}
		})
		if n, err := c.Overhead(t.Context()); n != want || (err == nil) != (want > 0) {
			t.Errorf("%s: want %d, got %d, %v", output, want, n, err)
		}
	}
}

// A probe ends with its context, at the target's timeouts, or after a minute.
func TestOverheadEnds(t *testing.T) {
	for name, c := range map[string]struct {
		timeouts Timeouts
		after    time.Duration
		err      error
	}{
		"by its context":  {limits, 3 * time.Second, context.DeadlineExceeded},
		"by first_token":  {Timeouts{FirstToken: time.Second}, time.Second, nil},
		"by our patience": {Timeouts{}, time.Minute, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := newClient(t, Target{Options: Options{Timeouts: c.timeouts}})
				over(t, client, func(_ int, conn net.Conn) { _, _, _ = request(conn) })
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				if c.after > 3*time.Second {
					ctx = t.Context()
				}
				start := time.Now()
				_, err := client.Overhead(ctx)
				if err == nil || c.err != nil && !errors.Is(err, c.err) || time.Since(start) != c.after {
					t.Errorf("want an error after %v, got %v after %v", c.after, err, time.Since(start))
				}
			})
		})
	}
}

func TestChoose(t *testing.T) {
	two := []Model{{"a", "vllm"}, {"b", "sglang"}}
	for name, c := range map[string]struct {
		configured string
		listed     []Model
		want       Model
		err        string
	}{
		"the only one":              {"", two[:1], two[0], ""},
		"none":                      {"", nil, Model{}, "model: the server lists none: name one"},
		"no name":                   {"", []Model{{"", "vllm"}}, Model{}, "model: the server lists one without a usable name (printable, at most 4096 bytes, without our credentials): name one"},
		"several":                   {"", two, Model{}, "model: the server lists several, name one of 2: a, b"},
		"many":                      {"", make([]Model, 500), Model{}, "model: the server lists several, name one of 500: , , , , , , , , ,"},
		"configured":                {"b", two, two[1], ""},
		"configured, not listed":    {"lora", two[:1], Model{"lora", "vllm"}, ""},
		"configured, nothing there": {"x", nil, Model{"x", ""}, ""},
		"an alias at TGI":           {"tgi", []Model{{"org/model", "org/model"}}, Model{"tgi", "tgi"}, ""},
	} {
		got, err := newClient(t, Target{Options: Options{Model: c.configured}}).Choose(c.listed)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: want %+v %q, got %+v %v", name, c.want, c.err, got, err)
		}
	}
}

// Choose may change the model while messages are built. Each message is consistent: it is for one of the two models
// or for none.
func TestChooseWhileBuilding(t *testing.T) {
	c := newClient(t, Target{})
	stop := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				if _, err := c.Choose([]Model{{ID: []secret.Text{"a", "b"}[i%2], OwnedBy: "vllm"}}); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for range 1000 {
		m := string(message(t, c))
		known := strings.Contains(m, `{"model":"a",`) || strings.Contains(m, `{"model":"b",`)
		if known != strings.Contains(m, "min_tokens") || !known && !strings.Contains(m, `{"messages":`) {
			t.Fatalf("half of a change: %s", m)
		}
	}
	close(stop)
	group.Wait()
}
