package openai

import (
	"encoding/json"
	"net/http/httptest"
	"testing"
	"time"

	"replayd/internal/measure"
	"replayd/internal/sim"
)

// lines sends each line of a log to the channel as it is written.
type lines chan []byte

func (l lines) Write(b []byte) (int, error) {
	l <- append([]byte(nil), b...)
	return len(b), nil
}

// The engine sees each cancellation at once, has the whole body, and logs the tokens generated until then, for
// streamed and non-streamed answers.
func TestEngineSeesCancellations(t *testing.T) {
	log := make(lines, 1)
	o := sim.Defaults()
	o.TTFT, o.ITL, o.Log = 5*time.Millisecond, 5*time.Millisecond, log
	e, err := sim.New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(e.Handler())
	defer server.Close()
	c := newClient(t, Target{Options: Options{URL: server.URL, API: Completions, Timeouts: patient}})
	l := c.Lane()
	defer l.Close()
	for name, h := range map[string]Hooks{
		"within its answer": {Cancel: true, CancelAfter: 52 * time.Millisecond},
		"at once":           {Cancel: true},
		"too late":          {Cancel: true, CancelAfter: time.Hour},
	} {
		for _, whole := range []bool{false, true} {
			most := 100_000 // far more than come before a cancellation
			if h.CancelAfter == time.Hour {
				most = 30
			}
			m, err := c.AppendRequest(nil, Body{Prompt: []byte("about after"), MaxTokens: most, RequestID: name, Stream: !whole})
			if err != nil {
				t.Fatal(err)
			}
			var req measure.Request
			req.Timeline.Whole = whole
			l.Do(t.Context(), m, &req, h)
			var entry sim.LogEntry
			if err := json.Unmarshal(<-log, &entry); err != nil {
				t.Fatal(err)
			}
			outcome, seen := measure.Cancelled, sim.Gone
			if h.CancelAfter == time.Hour {
				outcome, seen = measure.OK, sim.OK
			}
			if req.Outcome != outcome || entry.Outcome != seen || entry.ID != name || entry.PromptTokens != 2 {
				t.Errorf("%s, in one piece %v: want %s and %s, got %s (%s) and %+v", name, whole, outcome, seen, req.Outcome, req.Error, entry)
				continue
			}
			if outcome == measure.OK {
				continue
			}
			late := time.Duration(entry.End - req.Timeline.Cancel.UnixNano())
			if n := len(req.Timeline.Chunks); late < -time.Millisecond || entry.OutputTokens < n || entry.OutputTokens >= most {
				t.Errorf("%s, in one piece %v: the engine saw it %v later, with %d tokens of which %d came", name, whole, late, entry.OutputTokens, n)
			}
		}
	}
}
