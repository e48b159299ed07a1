package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"replayd/internal/fault"
)

// Bodies are whole request bodies, one a line: bare ones, as clients send them; lines of OpenAI's batch files
// (https://platform.openai.com/docs/api-reference/batch, "The request input object"); and evalscope's workload_trace
// (evalscope/perf/plugin/datasets/workload_trace.py), whose timestamps are seconds or dates, and whose body may be in a string.

// bodyKeys are keys that a body has and a row of Mooncake has not.
var bodyKeys = []string{
	"model", "max_tokens", "max_completion_tokens", "temperature", "top_p", "stream", "stream_options", "stop", "n", "logprobs", "response_format",
	"tool_choice", "seed", "presence_penalty", "frequency_penalty",
}

// rowKeys are keys of a row of Mooncake that has messages: such a line is no body.
var rowKeys = []string{"session_id", "delay", "output_length", "hash_ids", "extra", "input_length", "text_input", "payload", "schema", "row"}

// isBodies reports whether a first object with these keys is a body, or has one.
func isBodies(keys map[string]bool) bool {
	has := func(of []string) bool { return slices.ContainsFunc(of, func(key string) bool { return keys[key] }) }
	if keys["body"] {
		return (keys["timestamp"] || keys["custom_id"]) && !has(rowKeys)
	}
	return (keys["messages"] || keys["prompt"]) && has(bodyKeys) && !has(rowKeys) && !keys["timestamp"]
}

// bodyLineKeys are the keys of a line around a body. Those of its ids say nothing that is sent.
var bodyLineKeys = []string{"body", "timestamp", "headers", "url", "custom_id", "method", "request_id"}

// apis are the addresses of batch lines that are sent.
var apis = []string{"/v1/chat/completions", "/v1/completions"}

func (d dialect) body(line []byte, r *row) fault.List {
	r.clear()
	o := object{}
	if found := o.read(line, "row"); found != nil {
		return found
	}
	body := o.value("body")
	if body == nil {
		r.Payload, r.object, r.Model = bytes.Clone(line), object{}, modelOf(o.values["model"])
		return nil
	}
	if body[0] == '"' {
		var text string
		if json.Unmarshal(body, &text) == nil {
			body = json.RawMessage(text)
		}
	}
	var keys map[string]json.RawMessage
	if json.Unmarshal(body, &keys) != nil || len(keys) == 0 {
		o.faults = append(o.faults, fault.New("body", "an object with keys, or one in a string", "another value"))
	}
	r.Payload, r.object.values, r.Model = body, o.values, modelOf(keys["model"])
	if r.at, r.timed, r.unit = o.instant("timestamp", d.unit); r.unit == dated { // as evalscope has them, too
		r.unit = 0
	}
	if v := o.text("url", MaxSessionBytes); v != "" && v != apis[0] && v != apis[1] {
		o.fault("url", fmt.Sprintf("%s or %s", apis[0], apis[1]), "another")
	}
	o.takeHeaders(d.header, r)
	return o.faults
}

// maxModelBytes bounds the name of a model that a row asks for.
const maxModelBytes = 256

// body adds a body of a folder: each file is a session, and its lines are the turns, as in AIPerf
// (aiperf/dataset/loader/raw_payload.py). A line waits for the one before it.
func (l *lowering) body(_ int, text []byte) (fault.List, error) {
	var r row
	if found := (dialect{unit: time.Second, header: l.options.Header}).body(text, &r); len(found) > 0 {
		return found, nil
	}
	if r.timed {
		return fault.List{fault.New("timestamp", "none in a folder of bodies", "one")}, nil
	}
	l.unsent.add(r.unsent)
	r.Session, _, _ = strings.Cut(filepath.Base(l.faults.name), ".json")
	r.After = []Edge{}
	if l.latest >= 0 {
		r.After, r.Floating = []Edge{{Row: l.latest}}, true
	}
	l.latest = len(l.rows)
	return nil, l.row(&r.Record)
}

// modelOf returns the name of a model; "": the body has none, or one that no label can have.
func modelOf(v json.RawMessage) (name string) {
	if json.Unmarshal(v, &name) != nil || len(name) > maxModelBytes {
		return ""
	}
	return name
}

// unsent counts headers that rows may not set, and those rows.
type unsent struct{ headers, rows int }

func (u *unsent) add(headers int) {
	if u.headers += headers; headers > 0 {
		u.rows++
	}
}

func (u *unsent) String() string {
	return fmt.Sprintf("headers of rows that are not sent: %d in %d rows: trace.headers names those that are", u.headers, u.rows)
}

// takeHeaders takes the headers that rows may set, and counts the others. Their names and values are in no fault.
func (o *object) takeHeaders(may func(name, value string) bool, r *row) {
	v := o.value("headers")
	if v == nil {
		return
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(v, &all) != nil {
		o.faults = append(o.faults, fault.New("headers", "an object of names and texts", "another value"))
		return
	}
	for name, v := range all {
		var value string
		if may == nil || json.Unmarshal(v, &value) != nil || !may(name, value) {
			r.unsent++
			continue
		}
		if r.Headers == nil {
			r.Headers = map[string]string{}
		}
		r.Headers[name] = value
	}
}
