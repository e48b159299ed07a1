//go:build between

package between_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"replayd/bench/lab"
	"replayd/test/outside"
)

// A cut is an answer that the engine cuts.
type cut struct {
	name   string // of the workload
	what   string
	stream bool
	answer func(w http.ResponseWriter)
}

// half is a part of a whole answer, and rest what is missing.
const (
	half = `{"object": "chat.completion", "choices": [{"index": 0, "message": {"role": "assistant", "content": "where is`
	rest = ` it"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 20, "completion_tokens": 5}}`
)

var cuts = []cut{
	{"length", "whole, with its length", false, func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", fmt.Sprint(len(half+rest)))
		_, _ = fmt.Fprint(w, half)
	}},
	{"chunked", "whole, chunked", false, func(w http.ResponseWriter) { _, _ = fmt.Fprint(w, half) }},
	{"stream", "streamed, between events", true, func(w http.ResponseWriter) { _, _ = fmt.Fprint(w, content(0)) }},
	{"event", "streamed, in an event", true, func(w http.ResponseWriter) {
		_, _ = fmt.Fprint(w, content(0)+content(1)[:20])
	}},
}

// answerOrCut answers the first row of a workload and cuts the answer to the second one.
func answerOrCut(w http.ResponseWriter, r *http.Request, c *call) {
	for _, one := range cuts {
		if !strings.HasPrefix(c.id, one.name+"/") {
			continue
		}
		good := strings.HasSuffix(c.id, "/0")
		if one.stream && good {
			stream(0, 0, tokens)(w, r, c)
			return
		}
		w.Header().Set("Content-Type", map[bool]string{true: "text/event-stream", false: "application/json"}[one.stream])
		if good {
			_, _ = fmt.Fprint(w, half+rest)
			return
		}
		one.answer(w)
		_ = http.NewResponseController(w).Flush()
		<-time.After(100 * time.Millisecond) // unless the machine is busy, the head has been passed on by then
		panic(http.ErrAbortHandler)          // net/http then closes the connection
	}
}

// An answer that the engine cuts is truncated, whatever stands between. A proxy that learns of the cut before it has
// sent its own head may answer with an error instead, as Varnish does; such an outcome is right, too, and in the table.
func TestCut(t *testing.T) {
	programs := install(t)
	table := &lab.Table{Title: "Outcomes of answers that the engine cuts.", Head: []string{"between"}}
	for _, c := range cuts {
		table.Head = append(table.Head, c.what)
	}
	for _, between := range append([]configuration{{name: "none"}}, usual...) {
		e, cells := newEngine(t, answerOrCut), []string{between.name}
		url := e.URL
		if between.program != "" {
			url = start(t, programs, between, e).url()
		}
		var runs []*played
		for _, c := range cuts {
			stream := fmt.Sprint("--stream=", c.stream)
			runs = append(runs, begin(t, url, trace(make([]time.Duration, 2)), "--name", c.name, stream))
		}
		for i, p := range runs {
			p.end(t)
			what := cuts[i].what
			if n := len(e.seen(cuts[i].name)); n != 2 || len(p.records) != 2 {
				t.Errorf("%s, %s: want 2 requests and records, got %d and %d", between.name, what, n, len(p.records))
			}
			for _, r := range p.records {
				right := r.Outcome == "ok"
				if _, _, row := outside.Place(t, r.ID); row == 1 {
					refused := r.Status == http.StatusBadGateway || r.Status == http.StatusServiceUnavailable
					right = r.Outcome == "truncated" || refused && r.Outcome == "http_5xx" && between.program != ""
					cells = append(cells, r.Outcome)
				}
				if !right {
					t.Errorf("%s, %s, %s: got %s: %s", between.name, what, r.ID, r.Outcome, r.Error)
				}
			}
		}
		table.Add(cells...)
	}
	t.Logf("\n%s", table)
}
