package records

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"replayd/internal/measure"
	"replayd/internal/secret"
	"replayd/test/measuretest"

	"github.com/google/go-cmp/cmp"
)

func TestRecordFields(t *testing.T) {
	r := &measure.Request{
		ID: "conversation/3/17", Loop: 3, Row: 17, Session: `s"1`, Turn: 2, Lane: 7,
		Timeline: measure.Timeline{
			Planned: measuretest.Start, Due: measuretest.Start.Add(1), Ready: measuretest.Start.Add(2 * time.Millisecond), Lane: measuretest.Start.Add(3 * time.Millisecond), Waited: true,
			Write: measuretest.Start.Add(5 * time.Millisecond), Head: measuretest.Start.Add(12 * time.Millisecond), End: measuretest.Start.Add(50 * time.Millisecond), Connect: 9,
			Chunks: []time.Duration{10 * time.Millisecond, 14 * time.Millisecond, 40 * time.Millisecond}, ReasoningChunks: 1, MergedReads: 2, Kernel: true,
		},
		Outcome: measure.OK, Status: 200, Replica: `engine"1`, Retried: true, FinishReason: "length",
		InputTokens: 100, OutputTokens: 4, Overhead: 11,
		Usage: measure.Usage{Prompt: 101, Output: 4, Cached: 64, Reasoning: 1, Source: measure.UsageFinal}, CountedInput: 90, Events: 6,
	}
	const epoch = 1767323045 // start: date -u -d 2026-01-02T03:04:05Z +%s
	ns := func(sinceStart time.Duration) string { return fmt.Sprint(epoch*int64(time.Second) + int64(sinceStart)) }
	want := `{"id":"conversation/3/17","loop":3,"row":17,"session":"s\"1","turn":2,"phase":"profiling","lane":7,"outcome":"ok","error":"","status":200,"replica":"engine\"1","finish_reason":"length","unread_events":0,"unread_text":"","retried":true,` +
		`"planned_ns":` + ns(0) + `,"due_ns":` + ns(1) + `,"ready_ns":` + ns(2*time.Millisecond) + `,"lane_ns":` + ns(3*time.Millisecond) + `,"write_ns":` + ns(5*time.Millisecond) +
		`,"head_ns":` + ns(12*time.Millisecond) + `,"first_ns":` + ns(15*time.Millisecond) + `,"last_ns":` + ns(45*time.Millisecond) + `,"cancel_ns":null,"end_ns":` + ns(50*time.Millisecond) +
		`,"lateness_ns":2999991,"lane_wait_ns":1000000,"session_wait_ns":1999999,"connect_ns":9` +
		`,"ttft_ns":10000000,"ttfat_ns":14000000,"ttft_from_due_ns":14999999,"second_token_ns":4000000,"tpot_ns":10000000,"tpot_most_ns":null,"e2e_ns":40000000,"e2e_from_due_ns":44999999` +
		`,"chunks":3,"events":6,"merged_reads":2,"kernel_time":true,"clock_set":false,"whole":false,"input_tokens":100,"output_tokens":4,"overhead_tokens":11,"counted_input_tokens":90` +
		`,"usage_source":"usage","usage_rules":"","usage_prompt_tokens":101,"usage_output_tokens":4,"usage_cached_tokens":64,"usage_reasoning_tokens":1,"usage_opening_tokens":0}` + "\n"
	if diff := cmp.Diff(want, string(appendRecord(nil, r))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A failed request has times and waits, but no latencies; an unsent one has no waits either.
func TestRecordOfFailures(t *testing.T) {
	fields := func(r *measure.Request) map[string]any {
		t.Helper()
		var m map[string]any
		if err := json.Unmarshal(appendRecord(nil, r), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	f := func(name string, m map[string]any, null ...string) {
		t.Helper()
		var got []string
		for _, key := range []string{
			"write_ns", "head_ns", "first_ns", "last_ns", "cancel_ns", "end_ns", "lateness_ns", "lane_wait_ns", "session_wait_ns", "connect_ns",
			"ttft_ns", "ttfat_ns", "ttft_from_due_ns", "second_token_ns", "tpot_ns", "e2e_ns", "e2e_from_due_ns",
		} {
			v, there := m[key]
			if !there {
				t.Errorf("%s: no %s", name, key)
			}
			if v == nil {
				got = append(got, key)
			}
		}
		if diff := cmp.Diff(null, got); diff != "" {
			t.Errorf("%s: null are (-want +got):\n%s", name, diff)
		}
	}
	waits := []string{"lateness_ns", "lane_wait_ns", "session_wait_ns"}
	latencies := []string{"connect_ns", "ttft_ns", "ttfat_ns", "ttft_from_due_ns", "second_token_ns", "tpot_ns", "e2e_ns", "e2e_from_due_ns"}
	f("cut after two chunks", fields(measuretest.Request("", 0, measure.Truncated, time.Millisecond, 2*time.Millisecond)), append([]string{"head_ns", "cancel_ns"}, latencies...)...)
	f("one token", fields(measuretest.Request("", 0, measure.OK, time.Millisecond)), "head_ns", "cancel_ns", "connect_ns", "second_token_ns", "tpot_ns")
	whole := measuretest.Request("", 0, measure.OK, time.Millisecond)
	whole.Timeline.Whole, whole.Timeline.Head, whole.Phase = true, measuretest.Start.Add(time.Millisecond), measure.Warmup
	m := fields(whole)
	f("in one piece", m, "first_ns", "cancel_ns", "connect_ns", "ttft_ns", "ttfat_ns", "ttft_from_due_ns", "second_token_ns", "tpot_ns")
	if whole, _ := m["whole"].(bool); !whole || m["phase"] != "warmup" {
		t.Errorf("in one piece, to warm up: got whole %v, phase %v", m["whole"], m["phase"])
	}
	left := measuretest.Request("", 0, measure.Cancelled, time.Millisecond)
	left.Timeline.Cancel = measuretest.Start.Add(9 * time.Millisecond)
	f("cancelled after a chunk", fields(left), append([]string{"head_ns"}, latencies...)...)
	refused := measuretest.Request("", 0, measure.ConnectFailed)
	refused.Timeline.Write = time.Time{}
	f("never sent", fields(refused), slices.Concat([]string{"write_ns", "head_ns", "first_ns", "last_ns", "cancel_ns"}, waits, latencies)...)
}

// For any string, the line equals the output of encoding/json and decodes to the same string.
func FuzzRecordStrings(f *testing.F) {
	for _, seed := range []string{"", "ok", `a"b\c`, "\x00\x1f\n\t", "\xff\xfe", "日本\u2028", "\uFFFD", "a\xc3", "\x7f"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		line := appendRecord(nil, &measure.Request{ID: s, Session: s, Error: secret.Text(s), FinishReason: secret.Text(s), Outcome: measure.OK})
		if line[len(line)-1] != '\n' || bytes.Count(line, []byte{'\n'}) != 1 {
			t.Fatalf("not one line: %q", line)
		}
		var got struct {
			ID           string `json:"id"`
			Session      string `json:"session"`
			Error        string `json:"error"`
			FinishReason string `json:"finish_reason"`
		}
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		encoded, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var want string
		if err := json.Unmarshal(encoded, &want); err != nil {
			t.Fatal(err)
		}
		if got.ID != want || got.Session != want || got.Error != want || got.FinishReason != want {
			t.Errorf("%q reads back as %+v", want, got)
		}
	})
}
