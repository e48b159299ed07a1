package trace

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The figures of TraceLab's own example: sums of its fields; 17 rounds are not the first of the two sessions; and the blocks are
// Σ ⌊input/64⌋, of which each round keeps ⌊prefix/64⌋, at most those of the round before.
func TestTraceLabFigures(t *testing.T) {
	f, err := Open(t.Context(), "testdata/recorded/tracelab_rounds.jsonl", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := f.Stats
	got := []int64{
		int64(s.Requests), int64(s.Sessions), int64(s.Edges), s.Input.Sum, s.Output.Sum, s.Prefix.Blocks, s.Prefix.HitBlocks, int64(s.BlockTokens),
	}
	if want := []int64{19, 2, 17, 514012, 11335, 8022, 6851, 64}; !slices.Equal(want, got) {
		t.Errorf("want %d, got %d", want, got)
	}
	waits := time.Duration(0)
	for _, r := range read(t, f, 0) {
		for _, e := range r.After {
			waits += e.Wait
		}
	}
	if want := 123644 * ms; waits != want {
		t.Errorf("want waits of %v, got %v", want, waits)
	}
	warning := "testdata/recorded/tracelab_rounds.jsonl: tokens of prefixes that the round before does not have: 34752 of 473556: their blocks are new"
	if s.Format != TraceLab || !slices.Equal(s.Warnings, []string{warning}) {
		t.Errorf("got %s, %q", s.Format, s.Warnings)
	}
}

// roundText is a round. Events are kinds with seconds after an instant of 2026.
func roundText(session string, index, prefix, fresh int, events ...string) string {
	var list []string
	for _, e := range events {
		kind, at, _ := strings.Cut(e, " ")
		list = append(list, fmt.Sprintf(`{"event_type":%q,"timestamp":"2026-06-01T05:40:%sZ"}`, kind, at))
	}
	return fmt.Sprintf(`{"provider":"codex","session_id":%q,"round_index":%d,"trace_key":"%s:%d:%d","input_tokens_total":%d,"prefix_tokens":%d,`+
		`"newly_append_tokens":%d,"output_tokens":5,"timing_events":[%s]}`+"\n",
		session, index, session, index, prefix, prefix+fresh, prefix, fresh, strings.Join(list, ","))
}

// Rounds follow each other by their index, whatever their place. A round keeps the full blocks of its prefix, as far as the round
// before has them.
func TestTraceLabRounds(t *testing.T) {
	content := roundText("a", 1, 200, 70, "tool_result 12.5", "tool_result 13", "reasoning 14", "tool_call 15", "usage_report 19") +
		roundText("b", 0, 0, 64, "user_message 11") + // no answer: the next wait includes its time
		roundText("a", 0, 128, 100, "user_message 10", "text 11.5", "user_message 12") + // the last message was queued
		roundText("a", 2, 130, 0, "reasoning 15.5", "text 16") + // no input
		roundText("b", 1, 64, 64, "user_message 10.5", "text 12") + // it overlaps
		roundText("a", 3, 0, 300, "user_message 17", "text 18") +
		roundText("a", 4, 0, 0, "text 18") + // no model
		roundText("a", 3, 0, 300, "user_message 17", "text 18")
	f, err := openContent(t, content, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := time.Second
	want := []Record{
		{InputTokens: 228, Blocks: []uint64{0, 1, 2}, Session: "a", After: []Edge{}},
		{Offset: s, InputTokens: 64, Blocks: []uint64{8}, Session: "b", After: []Edge{}},
		{Offset: s, InputTokens: 128, Blocks: []uint64{8, 9}, Session: "b", After: []Edge{{1, 0}}},
		{Offset: 1500 * ms, InputTokens: 270, Blocks: []uint64{0, 1, 2, 3}, Session: "a", After: []Edge{{0, 1500 * ms}}},
		{Offset: 2 * s, InputTokens: 130, Blocks: []uint64{0, 1}, Session: "a", After: []Edge{{3, s / 2}}},
		{Offset: 3 * s, InputTokens: 300, Blocks: []uint64{4, 5, 6, 7}, Session: "a", After: []Edge{{4, s}}},
	}
	for i := range want {
		want[i].Number, want[i].Line, want[i].OutputTokens, want[i].Floating = i, i+2, 5, len(want[i].After) > 0
	}
	if diff := cmp.Diff(want, read(t, f, 0)); diff != "" {
		t.Error(diff)
	}
	warnings := []string{
		"t.jsonl: rounds with the trace_key of a round before are left out: 1",
		"t.jsonl: rounds without input tokens are left out: 1",
		"t.jsonl: rounds without an input before their answer: 1 of 6: each is sent at the first event of its answer",
		"t.jsonl: rounds without an event of their answer: 1 of 6: the wait after each includes the time of its answer",
		"t.jsonl: rounds that began before the answer before them ended: 1 of 6: each is sent at once after it",
		"t.jsonl: tokens of prefixes that the round before does not have: 128 of 522: their blocks are new",
	}
	if diff := cmp.Diff(warnings, f.Stats.Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestTraceLabFaults(t *testing.T) {
	ok := roundText("a", 1, 128, 100, "user_message 10", "text 11")
	change := func(old, with string) string {
		if !strings.Contains(ok, old) {
			t.Fatalf("%s is not in %s", old, ok)
		}
		return strings.Replace(ok, old, with, 1)
	}
	event := `{"event_type":"user_message","timestamp":"2026-06-01T05:40:10Z"}`
	for _, c := range []struct{ content, want string }{
		{change(`"session_id":"a"`, `"session_id":7`), `t.jsonl:1: session_id: want a string, got 7`},
		{change(`"session_id":"a"`, `"session_id":null`), `t.jsonl:1: session_id: want a string, got none`},
		{change(`"session_id":"a"`, `"session_id":""`), `t.jsonl:1: session_id: want a string that is not empty, got ""`},
		{change(`"session_id":"a"`, `"session_id":"`+strings.Repeat("a", 257)+`"`), `t.jsonl:1: session_id: want at most 256 bytes, got 257`},
		{change(`"trace_key":"a:1:128"`, `"trace_key":[]`), `t.jsonl:1: trace_key: want a string, got []`},
		{change(`"round_index":1`, `"round_index":null`), `t.jsonl:1: round_index: want an integer ≥ 0, got none`},
		{change(`"round_index":1`, `"round_index":-1`), `t.jsonl:1: round_index: want the number of a row, from 0, got -1`},
		{change(`"round_index":1`, `"round_index":"x"`), `t.jsonl:1: round_index: want the number of a row, from 0, got "x"`},
		{change(`"input_tokens_total":228,`, ``), `t.jsonl:1: input_tokens_total: want an integer ≥ 0, got none`},
		{change(`"input_tokens_total":228`, `"input_tokens_total":-1`), `t.jsonl:1: input_tokens_total: want an integer ≥ 0, got -1`},
		{change(`"input_tokens_total":228`, `"input_tokens_total":229`), `t.jsonl:1: input_tokens_total: want 228, prefix_tokens + newly_append_tokens, got 229`},
		{change(`"input_tokens_total":228`, `"input_tokens_total":99999999`), `t.jsonl:1: input_tokens_total: want at most 16777216 tokens, got 99999999`},
		{change(`"prefix_tokens":128,`, ``), `t.jsonl:1: prefix_tokens: want an integer ≥ 0, got none`},
		{change(`"prefix_tokens":128`, `"prefix_tokens":1.5`), `t.jsonl:1: prefix_tokens: want an integer ≥ 0, got 1.5`},
		{change(`"prefix_tokens":128,"newly_append_tokens":100`, `"prefix_tokens":300`), `t.jsonl:1: prefix_tokens: want at most 228, input_tokens_total, got 300`},
		{change(`"newly_append_tokens":100`, `"newly_append_tokens":{}`), `t.jsonl:1: newly_append_tokens: want an integer ≥ 0, got {}`},
		{change(`"output_tokens":5,`, ``), `t.jsonl:1: output_tokens: want an integer ≥ 0, got none`},
		{change(`"output_tokens":5`, `"output_tokens":true`), `t.jsonl:1: output_tokens: want an integer ≥ 0, got true`},
		{change(`"timing_events":[`, `"other":[`), `t.jsonl:1: timing_events: want a list of events, got none`},
		{change(`"timing_events":[`, `"timing_events":7,"other":[`), `t.jsonl:1: timing_events: want a list of events, got 7`},
		{change(`"timing_events":[`, `"timing_events":[],"other":[`), `t.jsonl:1: timing_events: want an input or an output with a timestamp, got none`},
		{change(event, `7`), `t.jsonl:1: timing_events[0]: want a JSON object, got "7"`},
		{change(`"event_type":"text"`, `"event_type":5`), `t.jsonl:1: timing_events[1].event_type: want a string, got 5`},
		{change(`"2026-06-01T05:40:10Z"`, `"2026-06-01"`), `t.jsonl:1: timing_events[0].timestamp: want a time such as 2026-06-01T05:40:20.151Z, got "2026-06-01"`},
		{change(`"2026-06-01T05:40:10Z"`, `1780000000`), `t.jsonl:1: timing_events[0].timestamp: want a string, got 1780000000`},
		{change(event, strings.Repeat(event+",", maxEvents)+event), `t.jsonl:1: timing_events: want at most 65536, got more`},
		{ok + "[1]", `t.jsonl:2: row: want a JSON object, got "[1]"`},
		{ok + `{"session_id":`, `t.jsonl:2: row: want a JSON object, got "{\"session_id\":" (unexpected end of JSON input)`},
		{strings.ReplaceAll(change(`"prefix_tokens":128,"newly_append_tokens":100`, `"prefix_tokens":0,"newly_append_tokens":0`), "228", "0"), `t.jsonl: want at least one row, got none: rounds without input tokens are left out: 1`},
	} {
		f, err := openContent(t, c.content, Options{Format: TraceLab})
		if err == nil {
			t.Errorf("want %s, got none", c.want)
			_ = f.Close()
		} else if err.Error() != c.want {
			t.Errorf("want %s, got %v", c.want, err)
		}
	}
}
