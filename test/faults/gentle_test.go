//go:build faults

package faults_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"replayd/test/outside"
)

// A gentle fault of a server or proxy loses nothing of an answer: the outcome, tokens and chunks are those of an
// untouched answer, and so is the text, which the next turn of the session carries.
func TestGentle(t *testing.T) {
	const output = 24
	const after = 1000 // ms: the connection of the first turn has met its fault by then
	s := newStage(t, "--ttft", "5ms", "--itl", "1ms", "--chunk-tokens", "1")
	p := newProxy(t, s.Engine, 1, nil)
	p.choose = func(id string) fault {
		_, _, row := outside.Place(t, id)
		if row%2 == 1 {
			return fault{name: "none"}
		}
		return gentle[row/2]
	}
	var trace strings.Builder
	for i := range gentle {
		const first = `{"role":"user","content":"where is the river"}`
		fmt.Fprintf(&trace, `{"timestamp":%d,"session_id":"s%d","output_length":%d,"messages":[%s]}`+"\n", 100*i, i, output, first)
		fmt.Fprintf(&trace, `{"timestamp":%d,"session_id":"s%d","output_length":2,"messages":[%s,{"role":"assistant","content":"nobody said this"},%s]}`+"\n",
			100*i+after, i, first, first)
	}
	rows := 2 * len(gentle)
	path := filepath.Join(s.Dir, "trace.jsonl")
	outside.Put(t, path, trace.String())
	s.Write(t, fmt.Sprintf(`targets: [{name: sim, url: "http://%s", timeouts: {first_token: 6s, stall: 5s, total: 20s}}]
records: {path: %q}
workloads: [{name: w, trace: {path: %q}, repeat: {mode: once}, prompt: {history: true}}]
`, p.listen(t), s.Records, path))
	daemon, _ := s.Serve(t)
	outside.See(t, s.URL(), fmt.Sprint(rows, " requests that ended"), func(now outside.Page) bool {
		finished, dropped := now.Ended("w")
		return int(finished+dropped) == rows
	})
	daemon.Term(t)

	records, _ := outside.Records(t, s.Records, false)
	if len(records) != rows {
		t.Errorf("want %d records, got %d", rows, len(records))
	}
	answers, carried := map[int]string{}, map[int]string{} // by the row of a session's first turn
	for _, x := range p.seen(t) {
		if _, _, row := outside.Place(t, x.id); row%2 == 0 {
			answers[row] = x.text
		} else {
			carried[row-1] = x.before
		}
	}
	lost := map[int]bool{} // first turns whose next one met the end of a kept connection, and is lost by the rule
	for _, r := range records {
		if _, _, row := outside.Place(t, r.ID); row%2 == 1 && r.Outcome == "no_answer" {
			lost[row-1] = true
		}
	}
	if len(lost) > 2 {
		t.Errorf("%d next turns are lost", len(lost))
	}
	for _, r := range records {
		_, _, row := outside.Place(t, r.ID)
		if row%2 == 1 {
			continue
		}
		name := gentle[row/2].name
		if r.Outcome != "ok" || r.Tokens != output || r.Chunks != output || r.Finish != "length" {
			t.Errorf("%s: want ok with %d tokens in as many chunks, got %s (%s), %d and %d, %q", name, output, r.Outcome, r.Error, r.Tokens, r.Chunks, r.Finish)
		}
		if strings.Count(answers[row], " ") != output || carried[row] != answers[row] && !lost[row] {
			t.Errorf("%s: want %d words, and the next turn to carry them, got %q, carried %q", name, output, answers[row], carried[row])
		}
	}
}
