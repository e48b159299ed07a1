package trace

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

func TestFaults(t *testing.T) {
	ok := `{"timestamp":0,"input_length":1}` + "\n"
	for _, c := range []struct {
		name, content string
		options       Options
		want          string
	}{
		{"empty", "", Options{}, "t.jsonl: want at least one row, got none"},
		{"only blank lines", "\n\r\n \n", Options{}, "t.jsonl: want at least one row, got none"},
		{"only a header", azureHeader + "\n", Options{}, "t.jsonl: want at least one row, got none"},
		{"neither format", "hello\nworld", Options{}, `t.jsonl:1: format: want a row of Mooncake or Bailian ({"timestamp": …}), a header of Azure, BurstGPT, Vidur or SplitwiseSim, or names of the file's columns (--columns, trace.columns), got "hello"`},
		{"no header", "2023-11-16 18:15:46.6805900,374,44", Options{Format: Azure}, `t.jsonl:1: header: want columns "TIMESTAMP" (timestamp), "ContextTokens" (input), "GeneratedTokens" (output), got "2023-11-16 18:15:46.6805900", "374", "44"`},
		{"not JSON on line 7", strings.Repeat(ok, 6) + "oops\n" + ok, Options{}, `t.jsonl:7: row: want a JSON object, got "oops" (invalid character 'o' looking for beginning of value)`},
		{"null", ok + "null", Options{}, "t.jsonl:2: row: want a JSON object, got null"},
		{"a list", "[1]", Options{Format: Mooncake}, `t.jsonl:1: row: want a JSON object, got "[1]"`},
		{"cut short", `{"timestamp":0,"input_length":1`, Options{}, `t.jsonl:1: row: want a JSON object, got "{\"timestamp\":0,\"input_length\":1" (unexpected end of JSON input)`},
		{"negative length", `{"input_length":-5}`, Options{}, "t.jsonl:1: input_length: want an integer ≥ 1, got -5"},
		{"length 0", `{"input_length":0}`, Options{}, "t.jsonl:1: input_length: want an integer ≥ 1, got 0"},
		{"fractional length", `{"input_length":5,"output_length":2.5}`, Options{}, "t.jsonl:1: output_length: want an integer ≥ 1, got 2.5"},
		{"output length 0", `{"input_length":5,"output_length":0}`, Options{}, "t.jsonl:1: output_length: want an integer ≥ 1, got 0"},
		{"length in words", `{"input_length":"x"}`, Options{}, `t.jsonl:1: input_length: want an integer ≥ 1, got "x"`},
		{"huge length", `{"input_length":99999999999999999999999}`, Options{}, "t.jsonl:1: input_length: want at most 16777216 tokens, got 99999999999999999999999"},
		{"negative timestamp", `{"timestamp":-1,"input_length":5}`, Options{}, "t.jsonl:1: timestamp: want milliseconds ≥ 0, got -1"},
		{"nanoseconds, strict", `{"timestamp":1696000000123456789,"input_length":5}`, Options{Strict: true}, "t.jsonl:1: timestamp: want milliseconds, got nanoseconds"},
		{"no certain unit", `{"timestamp":16960000001234,"input_length":5}`, Options{}, "t.jsonl:1: timestamp: want milliseconds ≤ 9000000000000, got 16960000001234"},
		{"a timestamp of words", `{"timestamp":"yesterday","input_length":5}`, Options{}, `t.jsonl:1: timestamp: want milliseconds ≥ 0, got "yesterday"`},
		{"negative delay", `{"delay":-1,"session_id":"a","input_length":5}`, Options{}, "t.jsonl:1: delay: want milliseconds ≥ 0, got -1"},
		{"huge delay", `{"delay":9000000000001,"session_id":"a","input_length":5}`, Options{}, "t.jsonl:1: delay: want milliseconds ≤ 9000000000000, got 9000000000001"},
		{"too few ids, strict", `{"input_length":1025,"hash_ids":[1,2]}`, Options{Strict: true, BlockTokens: 512}, "t.jsonl:1: hash_ids: want 3 ids for 1025 tokens in blocks of 512, got 2"},
		{"surplus ids, strict", `{"input_length":655,"hash_ids":[1,2,3]}`, Options{Strict: true, BlockTokens: 512}, "t.jsonl:1: hash_ids: want 2 ids for 655 tokens in blocks of 512, got 3"},
		{"ids not a list", `{"input_length":5,"hash_ids":"a"}`, Options{}, `t.jsonl:1: hash_ids: want a list of numbers or texts, got "a"`},
		{"an id of true", `{"input_length":5,"hash_ids":[true]}`, Options{}, `t.jsonl:1: hash_ids[0]: want a number or a text, got true`},
		{"an id of null", `{"input_length":1025,"hash_ids":["a",null]}`, Options{}, `t.jsonl:1: hash_ids[1]: want a number or a text, got null`},
		{"an id of a list", `{"input_length":5,"hash_ids":[[1]]}`, Options{}, `t.jsonl:1: hash_ids[0]: want a number or a text, got [1]`},
		{
			"ids of two kinds, strict", `{"input_length":5,"hash_ids":[1]}` + "\n" + `{"input_length":5,"hash_ids":["1"]}`,
			Options{Strict: true},
			`t.jsonl:2: hash_ids: want ids of one kind in all rows, numbers or texts, got both`,
		},
		{"ids without length", `{"text_input":"x","hash_ids":[1]}`, Options{}, `t.jsonl:1: hash_ids: want none without input_length, got [1]`},
		{"tools without messages", `{"input_length":5,"tools":[{}]}`, Options{}, `t.jsonl:1: tools: want none without messages, got [{}]`},
		{"two kinds of prompt", `{"input_length":5,"text_input":"x"}`, Options{}, "t.jsonl:1: text_input: want one of input_length, text_input, messages, payload, got input_length and text_input"},
		{
			"other names", `{"timestamp":5,"prompt_tokens":9}` + "\n" + `{"timestamp":6,"prompt_tokens":9}`,
			Options{},
			"t.jsonl:1: format: want a row with one of input_length, text_input, messages, payload, or names of the file's keys " +
				`(--columns, trace.columns), got keys "prompt_tokens", "timestamp"`,
		},
		{"no prompt", `{"timestamp":5}`, Options{}, "t.jsonl:1: input_length: want one of input_length, text_input, messages, payload, got none"},
		{"empty text", `{"text_input":""}`, Options{}, `t.jsonl:1: text_input: want a string that is not empty, got ""`},
		{"text is a number", `{"text_input":5}`, Options{}, `t.jsonl:1: text_input: want a string, got 5`},
		{"long session", `{"input_length":5,"session_id":"` + strings.Repeat("x", 257) + `"}`, Options{}, "t.jsonl:1: session_id: want at most 256 bytes, got 257"},
		{"no messages", `{"messages":[ ]}`, Options{}, `t.jsonl:1: messages: want a list of messages, got [ ]`},
		{"messages are text", `{"messages":"` + strings.Repeat("ü", 30) + `"}`, Options{}, `t.jsonl:1: messages: want a list of messages, got "\"` + strings.Repeat("ü", 19) + `"…`},
		{"extra is a list", `{"input_length":1,"extra":[1]}`, Options{}, `t.jsonl:1: extra: want an object with keys, got [1]`},
		{"several in one row", `{"timestamp":"x","input_length":"y"}`, Options{}, `t.jsonl:1: input_length: want an integer ≥ 1, got "y"` + "\n" + `t.jsonl:1: timestamp: want milliseconds ≥ 0, got "x"`},
		{"a timestamp missing", ok + `{"input_length":1}`, Options{}, "t.jsonl:2: timestamp: want milliseconds, as on line 1, got none"},
		{"first turn without timestamp", ok + `{"session_id":"a","input_length":1}`, Options{}, "t.jsonl:2: timestamp: want milliseconds, as on line 1, got none"},
		{"a timestamp too many", `{"input_length":1}` + "\n" + ok, Options{}, "t.jsonl:2: timestamp: want none, as on line 1, got one"},
		{"turns in disorder", `{"timestamp":5.5,"session_id":"a","input_length":1}` + "\n" + `{"timestamp":4,"session_id":"a","input_length":1}`, Options{}, "t.jsonl:2: timestamp: want ≥ 5.5, that of the session's turn before on line 1, got 4"},
		{"azure row", azureHeader + "\nx,0,99999999999\n2023-11-16 18:15:46.68,1\n1960-11-16 18:15:46,1,-1", Options{}, `t.jsonl:2: TIMESTAMP: want seconds from 0 to 9000000000, or a date such as 2006-01-02 15:04:05.999Z, got "x"
t.jsonl:2: ContextTokens: want an integer ≥ 1, got "0"
t.jsonl:2: GeneratedTokens: want at most 16777216 tokens, got "99999999999"
t.jsonl:3: row: want 3 columns, as in the header, got "2023-11-16 18:15:46.68,1"
t.jsonl:4: TIMESTAMP: want seconds from 0 to 9000000000, or a date such as 2006-01-02 15:04:05.999Z, got "1960-11-16 18:15:46"
t.jsonl:4: GeneratedTokens: want an integer ≥ 1, got "-1"`},
		{"no header of BurstGPT", "5,ChatGPT,472,18,490,Conversation log", Options{Format: BurstGPT}, `t.jsonl:1: header: want columns "Timestamp" (timestamp), "Request tokens" (input), "Response tokens" (output), got "5", "ChatGPT", "472", "18", "490", "Conversation log"`},
		{"burstgpt rows", burstHeader + "\n-1,m,0,1,1,x\n1e99,m,1.5,16777217,1,x\n0x10,m,1,,1,x\n1,m,1,1\n1,\"m,1,1,1,x\n", Options{}, `t.jsonl:2: Timestamp: want seconds from 0 to 9000000000, or a date such as 2006-01-02 15:04:05.999Z, got "-1"
t.jsonl:2: Request tokens: want an integer ≥ 1, got "0"
t.jsonl:3: Timestamp: want seconds from 0 to 9000000000, or a date such as 2006-01-02 15:04:05.999Z, got "1e99"
t.jsonl:3: Request tokens: want an integer ≥ 1, got "1.5"
t.jsonl:3: Response tokens: want at most 16777216 tokens, got "16777217"
t.jsonl:4: Timestamp: want seconds from 0 to 9000000000, or a date such as 2006-01-02 15:04:05.999Z, got "0x10"
t.jsonl:4: Response tokens: want an integer ≥ 1, got ""
t.jsonl:5: row: want 6 columns, as in the header, got "1,m,1,1"
t.jsonl:6: row: want quotes around a whole cell of one line, got "1,\"m,1,1,1,x"`},
		{"burstgpt session", burstSessions + "\n1," + strings.Repeat("x", 257) + ",,m,1,1,2,x", Options{}, "t.jsonl:2: Session ID: want at most 256 bytes, got 257"},
		{"only failed requests", burstHeader + "\n5,ChatGPT,472,0,472,x", Options{}, "t.jsonl: want at least one row, got none"},
		{"vllm rows", `{"input_length":5}` + "\n" + `{"timestamp":9000000001,"input_length":5,"output_length":0}` + "\n" + `{"timestamp":1,"text_input":"x","output_length":1}`, Options{Format: VLLM}, `t.jsonl:1: timestamp: want seconds, got none
t.jsonl:1: output_length: want an integer ≥ 1, got none
t.jsonl:2: output_length: want an integer ≥ 1, got 0
t.jsonl:2: timestamp: want seconds ≤ 9000000000, got 9000000001
t.jsonl:3: input_length: want an integer ≥ 1, got none`},
		{"bailian rows", `{"chat_id":1,"parent_chat_id":true,"timestamp":1,"input_length":5,"output_length":1}` + "\n" + `{"timestamp":2,"input_length":5,"output_length":1,"turn":0.5}`, Options{}, `t.jsonl:1: parent_chat_id: want a number or a text, got true
t.jsonl:2: chat_id: want a number or a text, got none
t.jsonl:2: turn: want an integer ≥ 1, got 0.5`},
		{"bailian turns in disorder", `{"chat_id":1,"parent_chat_id":-1,"timestamp":2.5,"input_length":5,"output_length":1}` + "\n" + `{"chat_id":2,"parent_chat_id":1,"timestamp":1,"input_length":5,"output_length":1}`, Options{}, "t.jsonl:2: timestamp: want ≥ 2.5, that of the session's turn before on line 1, got 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(t.Context(), write(t, "t.jsonl", c.content), c.options)
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestLongLine(t *testing.T) {
	line := func(bytes int) string {
		return `{"text_input":"` + strings.Repeat("x", bytes-len(`{"text_input":""}`)-1) + `"}` + "\n"
	}
	ok := `{"input_length":1}` + "\n"
	f := open(t, ok+line(MaxLineBytes)+ok, Options{})
	if got := read(t, f, 0); len(got) != 3 || len(got[1].Text) != MaxLineBytes-18 || got[2].Line != 3 {
		t.Errorf("a line of %d bytes: got %d rows", MaxLineBytes, len(got))
	}
	_, err := Open(t.Context(), write(t, "t.jsonl", ok+line(MaxLineBytes+1)+ok+line(10_000_000)+"{}"), Options{})
	want := `t.jsonl:2: row: want at most 8388608 bytes, got more
t.jsonl:4: row: want at most 8388608 bytes, got more
t.jsonl:5: input_length: want one of input_length, text_input, messages, payload, got none`
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestFirstTwentyFaultsAndACount(t *testing.T) {
	_, err := Open(t.Context(), write(t, "t.jsonl", strings.Repeat(`{"input_length":0}`+"\n", 50)), Options{})
	lines := strings.Split(fmt.Sprint(err), "\n")
	if len(lines) != 21 || lines[19] != "t.jsonl:20: input_length: want an integer ≥ 1, got 0" ||
		lines[20] != "t.jsonl: 50 errors in all, the first 20 are shown" {
		t.Errorf("got %d lines: %v", len(lines), err)
	}
}

func TestWarnings(t *testing.T) {
	surplus := `{"timestamp":1696000000,"input_length":655,"hash_ids":[1,2,3]}` + "\n"
	exact := `{"timestamp":1696000000,"input_length":655,"hash_ids":[1,2]}` + "\n"
	f := open(t, exact+exact+surplus, Options{})
	want := []string{
		"t.jsonl:3: hash_ids: want 2 ids for 655 tokens in blocks of 512, got 3: the surplus is ignored",
		"t.jsonl: the first row is due after 471h6m40s, for timestamps are read as milliseconds: from 471h6m40s on nothing is waited for (--from, trace.from)",
	}
	if got := f.Stats.Warnings; len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %q, want %q", got, want)
	}
	f = open(t, burstHeader+"\n0,m,1,0,1,x\n0,m,1,1,2,x\n0,m,1,0,1,x", Options{})
	if got := f.Stats.Warnings; len(got) != 1 || got[0] != "t.jsonl: requests that failed, with answers of 0 tokens, are left out: 2" {
		t.Errorf("got %q", got)
	}
	timed := `{"timestamp":1.5,"input_length":33,"output_length":1,"hash_ids":[1,2,3]}`
	f = open(t, timed, Options{})
	if got := f.Stats.Warnings; len(got) != 1 || got[0] != "t.jsonl: blocks of 16 tokens and fractions of a millisecond, as vLLM's timed traces have them in seconds: they are read as milliseconds (format vllm reads seconds)" {
		t.Errorf("got %q", got)
	}
	if f := open(t, timed, Options{Format: VLLM}); f.Stats.Warnings != nil || f.Stats.First != 1500*ms || f.Stats.Format != VLLM {
		t.Errorf("got %v, %v, %q", f.Stats.First, f.Stats.Format, f.Stats.Warnings)
	}
	f = open(t, `{"timestamp":172800,"input_length":1,"output_length":1}`, Options{Format: VLLM})
	if got := f.Stats.Warnings; len(got) != 1 || got[0] != "t.jsonl: the first row is due after 48h0m0s, for timestamps are read as seconds: from 48h0m0s on nothing is waited for (--from, trace.from)" {
		t.Errorf("got %q", got)
	}
	f = open(t, strings.Repeat(exact, 30)+strings.Repeat(surplus, 25), Options{})
	if got := f.Stats.Warnings; len(got) != 22 || got[20] != "t.jsonl: 25 warnings in all, the first 20 are shown" {
		t.Errorf("got %d warnings: %q", len(got), got)
	}
}

func TestWrongOptions(t *testing.T) {
	_, err := Open(t.Context(), "-", Options{Format: "csv", BlockTokens: -1})
	want := `trace format: want auto, mooncake, azure, burstgpt, columns, vllm, bailian, weka, request_trace, spans, tracelab, bodies, sessions, got "csv"
block tokens: want 1 to 16777216, or 0 to detect them, got -1`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestWrongPaths(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := Open(t.Context(), "missing.jsonl", Options{}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "missing.jsonl") {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Open(t.Context(), ".", Options{}); err == nil || err.Error() != ".: want a file, got a directory" {
		t.Errorf("directory: %v", err)
	}
	if _, err := Open(t.Context(), "-", Options{}); err == nil || err.Error() != "-: want a standard input to read, got none" {
		t.Errorf("no stdin: %v", err)
	}
}
