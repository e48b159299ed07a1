package trace

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// records reads a trace as rows.
func records(t *testing.T, content string, o Options) (f *File, all []Record) {
	t.Helper()
	f = open(t, content, o)
	if err := f.Each(t.Context(), func(r *Record) { all = append(all, *r) }); err != nil {
		t.Fatal(err)
	}
	return f, all
}

func TestBodies(t *testing.T) {
	const (
		chat  = `{"model":"a","messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"data:,"}}]}],"max_tokens":5,"temperature":0}`
		batch = `{"custom_id":"r1","method":"POST","url":"/v1/chat/completions","body":` + chat + `}`
	)
	lens := func(at, body string) string {
		return `{"timestamp":` + at + `,"body":` + body + `,"headers":{"X-Tenant":"t1","Authorization":"Bearer x"},"request_id":"9"}`
	}
	for _, c := range []struct {
		name, content string
		offsets       []time.Duration
		payload       string
		headers       map[string]string
		warnings      []string
	}{
		{"bare", chat + "\n" + chat, nil, chat, nil, nil},
		{"with a prompt", `{"prompt":"x","max_tokens":3}`, nil, `{"prompt":"x","max_tokens":3}`, nil, nil},
		{"a batch", batch, nil, chat, nil, nil},
		{
			"workload_trace, with dates", lens(`"2026-01-01T00:00:00.25Z"`, chat) + "\n" + lens(`"2026-01-01T00:00:01.5+00:00"`, chat),
			[]time.Duration{0, 1250 * time.Millisecond},
			chat,
			map[string]string{"X-Tenant": "t1"},
			[]string{
				"t.jsonl: headers of rows that are not sent: 2 in 2 rows: trace.headers names those that are",
			},
		},
		{
			"workload_trace, with seconds and a body in a string", lens("1767225600.25", `"{\"prompt\":\"x\"}"`),
			[]time.Duration{0},
			`{"prompt":"x"}`,
			map[string]string{"X-Tenant": "t1"},
			[]string{"t.jsonl: headers of rows that are not sent: 1 in 1 rows: trace.headers names those that are"},
		},
		{"with other keys", strings.Replace(batch, `"method"`, `"priority":3,"method"`, 1), nil, chat, nil, []string{"t.jsonl: keys that are not used: \"priority\" (1 row)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, all := records(t, c.content, Options{Header: func(name, _ string) bool { return name == "X-Tenant" }})
			if f.Stats.Format != Bodies || f.Stats.Prompts.Payload != len(all) || f.Stats.HasTimestamps != (c.offsets != nil) {
				t.Errorf("got %s, %+v, with times: %v", f.Stats.Format, f.Stats.Prompts, f.Stats.HasTimestamps)
			}
			for i, r := range all {
				if string(r.Payload) != c.payload || !maps.Equal(r.Headers, c.headers) || len(c.offsets) > 0 && r.Offset != c.offsets[i] {
					t.Errorf("row %d: got %s, %v, %v", i, r.Payload, r.Headers, r.Offset)
				}
			}
			if !slices.Equal(f.Stats.Warnings, c.warnings) {
				t.Errorf("want %q, got %q", c.warnings, f.Stats.Warnings)
			}
		})
	}
}

// No fault of a body has its text, or a header's.
func TestBodyFaults(t *testing.T) {
	const secret = "s3cret"
	first := `{"custom_id":"a","body":{"prompt":"x"}}` + "\n"
	for _, c := range []struct{ line, want string }{
		{`{"custom_id":"a","body":"s3cret"}`, "t.jsonl:2: body: want an object with keys, or one in a string, got another value"},
		{`{"custom_id":"a","body":["s3cret"]}`, "t.jsonl:2: body: want an object with keys, or one in a string, got another value"},
		{`{"custom_id":"a","body":{}}`, "t.jsonl:2: body: want an object with keys, or one in a string, got another value"},
		{`{"custom_id":"a","body":"{\"prompt\":\"s3cret\""}`, "t.jsonl:2: body: want an object with keys, or one in a string, got another value"},
		{`{"body":{"prompt":"x"},"url":"/v1/s3cret"}`, "t.jsonl:2: url: want /v1/chat/completions or /v1/completions, got another"},
		{`{"body":{"prompt":"x"},"headers":"s3cret"}`, "t.jsonl:2: headers: want an object of names and texts, got another value"},
		{`{"body":{"prompt":"x"},"headers":["s3cret"]}`, "t.jsonl:2: headers: want an object of names and texts, got another value"},
		{`{"custom_id":"a","body":1}`, "t.jsonl:2: body: want an object with keys, or one in a string, got another value"},
		{`{"custom_id":"a","body":true}`, "t.jsonl:2: body: want an object with keys, or one in a string, got another value"},
		{`{"custom_id":"a","body":"null"}`, "t.jsonl:2: body: want an object with keys, or one in a string, got another value"},
		{`{"custom_id":"a","body":"[]"}`, "t.jsonl:2: body: want an object with keys, or one in a string, got another value"},
		{`{"custom_id":"a","body":"{}"}`, "t.jsonl:2: body: want an object with keys, or one in a string, got another value"},
		{`{"custom_id":"a","body":""}`, "t.jsonl:2: body: want an object with keys, or one in a string, got another value"},
		{`{"body":{"prompt":"x"},"url":"/v1/embeddings"}`, "t.jsonl:2: url: want /v1/chat/completions or /v1/completions, got another"},
		{`{"body":{"prompt":"x"},"url":"https://h/v1/completions"}`, "t.jsonl:2: url: want /v1/chat/completions or /v1/completions, got another"},
		{`{"body":{"prompt":"x"},"url":7}`, "t.jsonl:2: url: want a string, got 7"},
		{`{"body":{"prompt":"x"},"url":""}`, `t.jsonl:2: url: want a string that is not empty, got ""`},
		{`{"body":{"prompt":"x"},"headers":1}`, "t.jsonl:2: headers: want an object of names and texts, got another value"},
		{`{"body":{"prompt":"x"},"timestamp":"soon"}`, `t.jsonl:2: timestamp: want seconds ≥ 0, got "soon"`},
		{`{"body":{"prompt":"x"},"timestamp":-1}`, "t.jsonl:2: timestamp: want seconds ≥ 0, got -1"},
		{`{"body":{"prompt":"x"},"timestamp":true}`, "t.jsonl:2: timestamp: want seconds ≥ 0, got true"},
		{`{"body":{"prompt":"x"},"timestamp":[1]}`, "t.jsonl:2: timestamp: want seconds ≥ 0, got [1]"},
		{`["body"]`, `t.jsonl:2: row: want a JSON object, got "[\"body\"]"`},
		{`null`, "t.jsonl:2: row: want a JSON object, got null"},
		{`{"body":{"prompt":"x"},"timestamp":1}`, "t.jsonl:2: timestamp: want none, as on line 1, got one"},
	} {
		_, err := openContent(t, first+c.line, Options{})
		if err == nil || err.Error() != c.want || strings.Contains(fmt.Sprint(err), secret) {
			t.Errorf("%s: want %s, got %v", c.line, c.want, err)
		}
	}
}

// A row of Mooncake that has messages is none of these.
func TestRowsOfMooncakeAreNoBodies(t *testing.T) {
	for _, line := range []string{
		`{"messages":[{"role":"user","content":"x"}]}`, `{"messages":[{"role":"user","content":"x"}],"output_length":5,"model":"a"}`,
		`{"timestamp":0,"messages":[{"role":"user","content":"x"}],"model":"a"}`,
	} {
		if f := open(t, line, Options{}); f.Stats.Format != Mooncake {
			t.Errorf("%s: got %s", line, f.Stats.Format)
		}
	}
}

// Headers of rows come through in Mooncake's format too, and after a row was shed.
func TestHeadersOfRows(t *testing.T) {
	const row = `{"timestamp":0,"input_length":5,"headers":{"x-tenant":"t1","x-other":"o"}}`
	f, all := records(t, row, Options{Header: func(name, _ string) bool { return name == "x-tenant" }})
	if want := map[string]string{"x-tenant": "t1"}; !maps.Equal(all[0].Headers, want) {
		t.Errorf("want %v, got %v", want, all[0].Headers)
	}
	if want := []string{"t.jsonl: headers of rows that are not sent: 1 in 1 rows: trace.headers names those that are"}; !slices.Equal(f.Stats.Warnings, want) {
		t.Errorf("want %q, got %q", want, f.Stats.Warnings)
	}
	if _, all = records(t, row, Options{}); all[0].Headers != nil {
		t.Errorf("want no headers by default, got %v", all[0].Headers)
	}
}

// An AIPerf row with keys of other tools says which are not used.
func TestUnusedKeysAreTold(t *testing.T) {
	f, _ := records(t, `{"timestamp":0,"input_length":5,"output_tokens":9}`+"\n"+`{"timestamp":1,"input_length":5,"output_tokens":9,"user":{"id":[1]},"delay":null}`, Options{})
	if want := []string{"t.jsonl: keys that are not used: \"output_tokens\" (2 rows), \"user\" (1 row)"}; !slices.Equal(f.Stats.Warnings, want) {
		t.Errorf("want %q, got %q", want, f.Stats.Warnings)
	}
	many := ""
	for i := range 40 {
		many += fmt.Sprintf(`{"input_length":5,"key%02d":1}`, i) + "\n"
	}
	f, _ = records(t, many, Options{})
	if n := strings.Count(f.Stats.Warnings[0], "key"); len(f.Stats.Warnings) != 1 || n != 1+mostUnused {
		t.Errorf("want at most %d keys, got %q", mostUnused, f.Stats.Warnings)
	}
}

// In a folder each file is a session, and its lines are the turns.
func TestFolderOfBodies(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"b.jsonl": `{"body":{"messages":[{"role":"user","content":"b"}],"model":"m2"},"headers":{"x-tenant":"t1","x-other":"o"}}`,
		"a.jsonl": `{"messages":[{"role":"user","content":"a1"}],"model":"m"}` + "\n" + `{"messages":[{"role":"user","content":"a2"}],"model":"m"}` + "\n",
		"x.txt":   "not read",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if !IsFolder(t.Context(), dir) || IsFolder(t.Context(), t.TempDir()) {
		t.Error("want the folder to be a trace, and an empty one to be none")
	}
	f, err := Open(t.Context(), dir, Options{Header: func(name, _ string) bool { return name == "x-tenant" }})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var got []string
	if err := f.Each(t.Context(), func(r *Record) {
		got = append(got, fmt.Sprint(r.Session, r.After, r.Model, " ", string(r.Payload[28:42]), r.Headers))
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{`a[]m "content":"a1"map[]`, `a[{0 0s}]m "content":"a2"map[]`, `b[]m2 "content":"b"}map[x-tenant:t1]`}
	if f.Stats.Format != Bodies || f.Stats.Sessions != 2 || !slices.Equal(got, want) {
		t.Errorf("got %s, %d sessions, %q, want %q", f.Stats.Format, f.Stats.Sessions, got, want)
	}
	left := []string{dir + ": headers of rows that are not sent: 1 in 1 rows: trace.headers names those that are"}
	if !slices.Equal(f.Stats.Warnings, left) {
		t.Errorf("got %q, want %q", f.Stats.Warnings, left)
	}
}

// Whatever a line has, it is read or refused, and neither its text nor its headers are in a fault.
func FuzzBodies(f *testing.F) {
	for _, line := range []string{
		`{"model":"a","messages":[],"max_tokens":5}`, `{"custom_id":"r","url":"/v1/completions","body":{"prompt":"x"}}`,
		`{"timestamp":"2026-01-01T00:00:00Z","body":"{\"prompt\":1}","headers":{"a":"b","c":1}}`, `{"body":{}}`, `{"body":null,"headers":[]}`,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		var r row
		found := dialect{unit: time.Second, header: func(string, string) bool { return true }}.body([]byte(line), &r)
		if len(found) == 0 && len(r.Payload) == 0 {
			t.Errorf("%q: want a payload or a fault", line)
		}
		for _, fault := range found {
			if fault.Key == "body" && !strings.HasSuffix(fault.Want, "got another value") || fault.Key == "headers" && !strings.HasSuffix(fault.Want, "got another value") {
				t.Errorf("%q: %v", line, fault)
			}
		}
	})
}
