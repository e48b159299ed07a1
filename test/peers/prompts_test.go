//go:build peers

package peers_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"replayd/test/machine"
	"replayd/test/outside"
)

// talk is a trace with rows of every kind that has a text, not in order of time, and with blanks that bodies keep.
const talk = `{"session_id": "sess-1", "messages": [{"role": "user", "content": "Hello"}], "output_length": 50, "timestamp": 0}
{"session_id": "sess-1", "messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi!"}, {"role": "user", "content": "How are you?"}], "output_length": 30, "timestamp": 900}
{"messages": [{"role": "user", "content": "Is it <cold> & \u0077et?"}], "tools": [{"type": "function", "function": {"name": "get_weather", "description": "Get weather", "parameters": {"type": "object", "properties": {"location": {"type": "string"}}}}}], "output_length": 50, "timestamp": 100}
{"text_input": "What is the \"capital\" of France?\nSay <it>.", "output_length": 20, "timestamp": 300}
{"input_length": 1200, "output_length": 52, "hash_ids": [0, 1, 2], "timestamp": 300, "extra": {"temperature": 0.5, "stop": ["a", "b"]}}
{"input_length": 700, "output_length": 5, "hash_ids": [0, 4], "timestamp": 1500}
`

// prose has rows of the same kinds for completions.
const prose = `{"text_input": "What is the \"capital\" of France?\nSay <it>.", "output_length": 20, "timestamp": 300}
{"input_length": 1200, "output_length": 52, "hash_ids": [0, 1, 2], "timestamp": 300}
{"input_length": 700, "output_length": 5, "hash_ids": [0, 4], "timestamp": 900}
`

// A file of --save-prompts replays to the same bodies, in the same order, at the same instants. The flags that shape a
// body are the same in both runs.
func TestSavedPrompts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files       func(*testing.T, string, string)
		first, then string
		timed       bool
		lacks       string // a text that the saved file lacks
	}{
		"TraceReplay": {
			conversation("trace.jsonl", 9*time.Second),
			"--trace-path trace.jsonl --backend vllm --host ${ENDPOINT_URL%:*} --port ${ENDPOINT_URL#*:}", "prompts.jsonl --url $ENDPOINT_URL --output max", true, "",
		},
		"TraceReplay twice": {
			conversation("trace.jsonl", 6*time.Second),
			"--trace-path trace.jsonl --backend vllm --host ${ENDPOINT_URL%:*} --port ${ENDPOINT_URL#*:}", "--trace-path prompts.jsonl --host ${ENDPOINT_URL%:*} --port ${ENDPOINT_URL#*:}", true, "",
		},
		"replayd":         {conversation("trace.jsonl", 9*time.Second), "trace.jsonl --url $ENDPOINT_URL", "prompts.jsonl --url $ENDPOINT_URL", true, ""},
		"faster":          {conversation("trace.jsonl", 30*time.Second), "trace.jsonl --url $ENDPOINT_URL --speed 10", "prompts.jsonl --url $ENDPOINT_URL", true, ""},
		"conversations":   {text("trace.jsonl", talk), "trace.jsonl --url $ENDPOINT_URL", "prompts.jsonl --url $ENDPOINT_URL", true, ""},
		"completions":     {text("trace.jsonl", prose), "trace.jsonl --url $ENDPOINT_URL --api completions", "prompts.jsonl --url $ENDPOINT_URL --api completions", true, ""},
		"token ids":       {text("trace.jsonl", prose), "trace.jsonl --url $ENDPOINT_URL --api completions --prompt tokens", "prompts.jsonl --url $ENDPOINT_URL --api completions", true, ""},
		"one at a time":   {conversation("trace.jsonl", 9*time.Second), "trace.jsonl --url $ENDPOINT_URL --concurrency 1", "prompts.jsonl --url $ENDPOINT_URL --concurrency 1", false, ""},
		"very long":       {text("trace.jsonl", `{"timestamp": 0, "input_length": 800000, "output_length": 5}`), "trace.jsonl --url $ENDPOINT_URL", "prompts.jsonl --url $ENDPOINT_URL", true, ""},
		"made-up talks":   {nil, "--url $ENDPOINT_URL --streaming --isl 100 --osl 10 --request-count 12 --session-turns-mean 3", "prompts.jsonl --url $ENDPOINT_URL --output max --concurrency 1", false, ""},
		"answers carried": {text("trace.jsonl", talk), "trace.jsonl --url $ENDPOINT_URL --history", "prompts.jsonl --url $ENDPOINT_URL", true, "Hi!"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			flags := append([]string{"--model", "m", "--max-model-len", "2000000"}, fast...)
			e := start(t, dir, flags...)
			if c.files != nil {
				c.files(t, dir, e.address)
			}
			well(t, shell(t, dir, e.address, "replayd run "+c.first+" --model m --save-prompts --result-dir ."))
			first := e.received(t)
			if err := os.Rename(e.log, filepath.Join(dir, "first.jsonl")); err != nil {
				t.Fatal(err)
			}
			e = start(t, dir, flags...)
			well(t, shell(t, dir, e.address, "replayd run "+c.then+" --model m"))
			then := byRow(t, e.received(t)) // a row is a line of the file

			lines, torn := outside.Lines[struct{ Timestamp *float64 }](t, filepath.Join(dir, "prompts.jsonl"))
			if saved, err := os.ReadFile(filepath.Join(dir, "prompts.jsonl")); err != nil || c.lacks != "" && strings.Contains(string(saved), c.lacks) {
				t.Errorf("want %q in no saved request: %v", c.lacks, err)
			}
			if torn || len(lines) != len(first) || len(then) != len(first) || distinct(first) != len(first) {
				t.Fatalf("want %d requests, each of its own, saved and sent again, got %d lines and %d requests", distinct(first), len(lines), len(then))
			}
			sent := map[string]request{} // in the first run, by body
			for _, r := range first {
				sent[r.Body] = r
			}
			var due []time.Duration
			var of []request // in the order of the file
			for i, r := range then {
				old, ok := sent[r.Body]
				if !ok {
					t.Errorf("line %d: want a body that was sent before", i+1)
					continue
				}
				of = append(of, old)
				if (lines[i].Timestamp != nil) != c.timed {
					t.Errorf("line %d: want a timestamp: %v", i+1, c.timed)
				} else if c.timed {
					due = append(due, time.Duration((*lines[i].Timestamp-*lines[0].Timestamp)*float64(time.Millisecond)))
				}
			}
			if t.Failed() {
				return
			}
			if !c.timed {
				for _, fault := range disorder(of, 1) {
					t.Errorf("in the file's order %s", fault)
				}
				return
			}
			for i := 1; i < len(of); i++ { // due at one instant: in the order of the rows
				if a, b := place(t, of[i-1].ID), place(t, of[i].ID); due[i] == due[i-1] && a[1] > b[1] {
					t.Errorf("want row %d before %d, which are due together", b[1], a[1])
				}
			}
			for what, all := range map[string][]request{"first": of, "then": then} {
				late := lateness(all, due)
				median, last := late[len(late)/2], late[len(late)-1]
				if (median > halfWithin || last > allWithin) && machine.Measures(t, "the lateness of the requests") {
					t.Errorf("%s: want them at the file's instants, half are %v off and one %v", what, median, last)
				}
			}
		})
	}
}

// A file that cannot be written is reported before anything is sent; so is a full disk, once it is noticed.
func TestSavedPromptsOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	outside.Write(t, dir, "trace.jsonl", prose)
	if err := os.Symlink("/dev/full", filepath.Join(dir, "prompts.jsonl")); err != nil {
		t.Fatal(err)
	}
	e := start(t, dir, "--model", "m")
	s := shell(t, dir, e.address, "replayd run trace.jsonl --url $ENDPOINT_URL --save-prompts")
	if n := len(e.received(t)); s.code != 1 || !strings.Contains(s.warned, "--save-prompts: write") || !strings.Contains(s.warned, "no space left") || n != 3 {
		t.Errorf("want exit 1, all 3 requests and the reason, got %d and %d\n%s", s.code, n, s.warned)
	}
}

// A request that is longer than a line of a trace may be is not saved, and a message says so. The others are saved.
func TestSavedPromptsThatAreTooLong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	outside.Write(t, dir, "trace.jsonl", prose+`{"timestamp": 100, "input_length": 1200000, "output_length": 5}`)
	e := start(t, dir, append([]string{"--model", "m", "--max-model-len", "2000000"}, fast...)...)
	s := shell(t, dir, e.address, "replayd run trace.jsonl --url $ENDPOINT_URL --save-prompts")
	lines, torn := outside.Lines[traceRow](t, filepath.Join(dir, "prompts.jsonl"))
	if n := len(e.received(t)); s.code != 1 || !strings.Contains(s.warned, "--save-prompts: 1 request left out: a line of a trace has at most 8388608 bytes") || n != 4 || torn || len(lines) != 3 {
		t.Errorf("want exit 1, 4 requests, 3 of them saved, and the reason, got %d, %d and %d\n%s", s.code, n, len(lines), s.warned)
	}
}
