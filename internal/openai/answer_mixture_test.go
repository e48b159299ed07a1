package openai

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
)

// FuzzMixture plays random mixtures of the parts that servers send, made of the input's bytes. The product must read
// them as the reference does.
func FuzzMixture(f *testing.F) {
	seeds := 400
	if testing.Short() {
		seeds = 40
	}
	random := rand.NewChaCha8([32]byte{})
	for n := range seeds {
		b := make([]byte, 10+n%200)
		_, _ = random.Read(b)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := &dice{left: data}
		if d.pick(12) == 11 {
			body := d.whole()
			want := reference{}
			want.whole(body)
			if got := mixture(t, true, jsonHead+chunked(body)+bodyEnd, nil, time.Hour, ""); got != want.result() {
				t.Errorf("%s\nwant %+v\n got %+v", body, want.result(), got)
			}
			return
		}
		closes := d.pick(4) == 3
		pieces, end, last := d.stream(closes)
		want := reference{}
		want.stream(pieces, end)
		if want.tie {
			return
		}
		head := streamHead
		if closes {
			head = strings.Replace(head, "Transfer-Encoding: chunked", "Connection: close", 1)
		}
		got := mixture(t, false, head, pieces, end, last)
		if want.text == "?" || strings.ContainsAny(want.text, "\r\n") {
			want.text, got.text = "", ""
		}
		if got != want.result() {
			var all strings.Builder
			for _, p := range pieces {
				fmt.Fprintf(&all, "%v\t%q\n", p.at, p.text)
			}
			t.Errorf("%sends after %v with %q, closes %v\nwant %+v\n got %+v", &all, end, last, closes, want.result(), got)
		}
	})
}

const jsonHead = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"

// A result is the reading of an answer.
type result struct {
	outcome                          measure.Outcome
	text, finish                     string
	chunks, thoughts, events, unread int
	usage                            measure.Usage
}

func (r *reference) result() result {
	return result{r.outcome, r.text, r.finish, len(r.kinds), r.thoughts(), r.events, r.unread, r.usage()}
}

// mixture returns the product's reading of an answer.
func mixture(t *testing.T, whole bool, head string, pieces []piece, end time.Duration, last string) result {
	req := played(t, whole, head, pieces, end, last)
	r := result{
		req.Outcome, "", req.Finish, len(req.Timeline.Chunks), req.Timeline.ReasoningChunks, req.Events, req.Unread,
		req.Usage,
	}
	if req.Outcome == measure.ErrorEvent {
		r.text = string(req.Error)
	}
	return r
}

// played plays an answer in virtual time. The connection closes at end, after the last bytes; 0: never.
func played(
	t *testing.T, whole bool, head string, pieces []piece, end time.Duration, last string,
) (req measure.Request) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Target{Options: Options{Timeouts: limits}})
		closed := strings.Contains(head, "Connection: close")
		over(t, c, func(_ int, conn net.Conn) {
			_, _, _ = request(conn)
			start := time.Now()
			send(conn, head)
			for _, p := range pieces {
				pass(p.at - time.Since(start))
				if !closed {
					p.text = chunked(p.text)
				}
				if _, err := conn.Write([]byte(p.text)); err != nil {
					break
				}
			}
			if end > 0 {
				pass(end - time.Since(start))
				send(conn, last)
				_ = conn.Close()
			}
		})
		l := c.Lane()
		defer l.Close()
		req.Timeline.Whole = whole
		do(t, l, &req)
	})
	return req
}

// dice make choices of bytes; when there are none left, the first ones.
type dice struct {
	left []byte
	calm bool // few errors: more comes before the end
}

func (d *dice) pick(n int) int {
	if len(d.left) == 0 {
		return 0
	}
	b := d.left[0]
	d.left = d.left[1:]
	return int(b) % n
}

func (d *dice) of(all ...string) string { return all[d.pick(len(all))] }

// some returns up to n of these, joined by commas.
func (d *dice) some(n int, all ...string) string {
	var some []string
	for range d.pick(n + 1) {
		some = append(some, d.of(all...))
	}
	return strings.Join(some, ",")
}

// stream returns a stream in pieces, and when and with which bytes its connection ends; 0: it is held.
func (d *dice) stream(closes bool) (pieces []piece, end time.Duration, last string) {
	ending, cut := d.pick(4), d.pick(256)
	d.calm = d.pick(3) > 0
	at := time.Duration(0)
	wait := func() {
		at += []time.Duration{0, 0, 0, 0, 0, 3, 401, 907, 1303, 17011, 29003, 31007}[d.pick(12)] * time.Millisecond
	}
	text := d.of("", "", "", "\ufeff", "\n", ": hello\n\n")
	for len(d.left) > 0 && len(pieces) < 60 {
		text += d.event()
		if d.pick(3) == 0 {
			continue // with the next one in one read
		}
		if d.pick(4) == 0 {
			n := d.pick(len(text) + 1)
			if n > 0 {
				pieces = append(pieces, piece{at, text[:n]})
			}
			text = text[n:]
			wait()
		}
		if text != "" {
			pieces = append(pieces, piece{at, text})
		}
		text = ""
		wait()
	}
	if text != "" {
		pieces = append(pieces, piece{at, text})
	}
	if ending == 0 {
		return pieces, 0, ""
	}
	if ending == 1 && len(pieces) > 0 { // a cut at any byte
		p := &pieces[len(pieces)-1]
		p.text = p.text[:len(p.text)*cut/256]
		if at = p.at; p.text == "" {
			pieces = pieces[:len(pieces)-1]
		}
	}
	if wait(); ending == 3 && !closes {
		last = bodyEnd
	}
	return pieces, at + time.Millisecond, last
}

// event returns the lines of an event, or of none.
func (d *dice) event() string {
	lf := d.of("\n", "\n", "\n", "\r\n", "\r")
	field := d.of("data: ", "data: ", "data:", "data:  ", "error: ")
	if d.calm {
		field = "data: "
	}
	var lines []string
	switch d.pick(12) {
	case 0:
		lines = append(lines, d.of(": ping", ":", "id: 5", "retry: 5", "event: message", "event:", "dat: a", "data"))
	case 1:
		lines = append(lines, d.of("event: error", "event:error"+lf+": gone", "event: ping", "event: message",
			"error: broken"))
	}
	data := d.data()
	if d.pick(8) == 7 {
		data = strings.ReplaceAll(data, ",", ","+lf+field)
	}
	if d.pick(12) != 11 {
		lines = append(lines, field+data)
	}
	if len(lines) > 1 && d.pick(2) == 1 {
		lines[0], lines[1] = lines[1], lines[0]
	}
	return strings.Join(append(lines, "", ""), lf)
}

// data returns the data of an event.
func (d *dice) data() string {
	kind := d.pick(16)
	if kind < 3 && d.calm && d.pick(8) < 7 {
		kind = 15
	}
	switch kind {
	case 0:
		return "[DONE]"
	case 1:
		return d.of("ping", "7", "null", "[]", `"a"`, "{", `{"choices":[{"delta":{"content":"a"}`, "{}", `{"a":"b"}`,
			"[DONE] ", `{"choices":[{"delta":{"content":[`)
	case 2:
		return "{" + d.some(3, append(flat, `"choices":[{}]`, `"timings":{"prompt_n":5}`, d.usage())...) + "}"
	case 3, 4, 5:
		return `{"choices":[],` + d.usage() + "}"
	case 6, 7, 8:
		reasons := `{"delta":{},"finish_reason":` + d.reason() + "}"
		switch n := d.pick(6); {
		case n == 0:
			reasons += `,{"finish_reason":` + d.reason() + "}"
		case n == 1 && !d.calm:
			reasons = `{"error":` + d.of(faults...) + `},{"error":` + d.of(faults...) + "}"
		}
		return `{"choices":[` + reasons + "]" + d.beside() + "}"
	case 9, 10, 11:
		return d.chunk("delta")
	}
	return `{"choices":[{"delta":{` + d.of(contents...) + "}}]" + d.beside() + "}"
}

// beside returns a usage for a chunk that has other members, or nothing.
func (d *dice) beside() string {
	if d.pick(6) < 5 {
		return ""
	}
	return "," + d.usage()
}

func (d *dice) whole() string {
	if d.pick(8) == 7 {
		return d.of("", "[]", `{"choices":`, "{}", `{"choices":[]}`, `{"choices":[null]}`)
	}
	return d.chunk("message")
}

// chunk returns a chunk of many parts.
func (d *dice) chunk(message string) string {
	var members []string
	if d.pick(8) != 7 {
		var choices []string
		for range d.pick(3) {
			choices = append(choices, d.choice(message))
		}
		members = append(members, `"choices":[`+strings.Join(choices, ",")+"]")
	}
	if d.pick(4) == 3 {
		members = append(members, d.usage())
	}
	if d.pick(8) == 7 {
		members = append(members, d.of(flat...))
	}
	if len(members) > 1 && d.pick(2) == 1 {
		members[0], members[1] = members[1], members[0]
	}
	return "{" + strings.Join(members, ",") + "}"
}

func (d *dice) choice(message string) string {
	members := []string{`"index":0`, `"` + message + `":{` + d.some(2, contents...) + "}"}
	switch d.pick(6) {
	case 0, 1:
		members = append(members, `"finish_reason":`+d.reason())
	case 2:
		members = append(members, d.of(`"text":"a"`, `"text":""`, `"token_ids":[5]`, `"token_ids":[]`, `"logprobs":{"a":1}`,
			`"image":{"a":1}`, `"content":"a"`, d.usage()))
	case 3:
		members = append(members, `"error":`+d.of(faults...))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func (d *dice) reason() string {
	reason := d.of(append(strings.Fields(properEnds+" "+abortEnds), "stop", "length", "abort", "strange", "")...)
	switch d.pick(8) {
	case 0:
		return `"` + strings.ToUpper(reason) + `"`
	case 1:
		return `"` + strings.ReplaceAll(reason, "_", "-") + `"`
	case 2:
		return `{"type":"` + reason + `","stop":5}`
	case 3:
		return d.of("null", "5", "[]", "{}", `{"type":5}`)
	}
	return `"` + reason + `"`
}

// usage returns a usage, or llama.cpp's timings.
func (d *dice) usage() string {
	n := func() string {
		return d.of("5", "0", "3", "7", "12", "4.0", "1e1", "-1", "2.5", "null", `"5"`, "1000000001")
	}
	if d.pick(6) == 5 {
		return `"timings":{"predicted_n":` + n() + d.of("", `,"prompt_n":7`, `,"prompt_n":3,"cache_n":`+d.of("0", "2")) + "}"
	}
	if d.pick(8) == 7 {
		return `"usage":` + d.of("null", "{}", "5", `"none"`, "[]")
	}
	usage := fmt.Sprintf(`"prompt_tokens":%s,"completion_tokens":%s,"total_tokens":%s`, n(), n(), n())
	switch d.pick(4) {
	case 0:
		usage = d.some(3, `"prompt_tokens":5`, `"completion_tokens":4`, `"total_tokens":9`, `"input_tokens":3`,
			`"output_tokens":2`)
	case 1:
		usage = fmt.Sprintf(`"input_tokens":%s,"output_tokens":%s`, n(), n()) + d.of("", `,"prompt_tokens":4`)
	}
	if d.pick(2) == 1 {
		usage += "," + d.of(`"prompt_tokens_details":{"cached_tokens":`, `"input_tokens_details":{"cached_tokens":`,
			`"completion_tokens_details":{"reasoning_tokens":`, `"output_tokens_details":{"reasoning_tokens":`) + n() + "}"
	}
	if d.pick(3) == 2 {
		usage += "," + d.of(`"cached_tokens":`, `"prompt_cache_hit_tokens":`, `"cache_read_input_tokens":`,
			`"reasoning_tokens":`) + n()
	}
	return `"usage":{` + strings.Trim(usage, ",") + "}"
}

// contents are members of a delta or a message. Some come twice, then the last counts. One without a meaning has
// content always or never: the product counts any of them.
var contents = []string{
	`"content":"a"`, `"content":"a"`, `"content":"b"`, `"content":"a\n, \u00e9"`, `"content":""`, `"content":null`,
	`"role":"assistant"`, `"role":"assistant","content":""`, `"content":["a"]`, `"content":[]`,
	`"content":[{"type":"text","text":"a"}]`, `"content":[{"type":"text","text":""}]`, `"refusal":"no"`, `"refusal":null`,
	`"content":[{"type":"refusal","refusal":"a"}]`, `"content":[{"type":"image_url","image_url":{"url":"data:"}}]`,
	`"content":[{"type":"thinking","thinking":"a"}]`, `"content":[{"type":"audio","text":null,"refusal":null}]`,
	`"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]`,
	`"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"a"}]`, `"reasoning_content":"a"`,
	`"reasoning_content":"a","content":null`, `"reasoning":"a"`, `"reasoning":"a"`, `"reasoning":""`,
	`"reasoning_text":"a"`,
	`"reasoning_details":[{"type":"reasoning.text","text":"a"}]`, `"reasoning_details":[{"data":"a"}]`,
	`"reasoning_details":[{"summary":"a"},{}]`, `"reasoning_details":[{"text":""}]`, `"reasoning_details":[]`,
	`"thinking_blocks":[{"thinking":"a","signature":null}]`, `"thinking_blocks":[{"data":"a"}]`,
	`"thinking_blocks":[{"text":"a"}]`, `"reasoning_details":[{"thinking":"a"}]`,
	`"tool_calls":[{"id":"x","function":{"name":"f","arguments":""}}]`, `"tool_calls":[{"function":{"arguments":"{"}}]`,
	`"tool_calls":[{"function":{"arguments":{"a":1}}}]`, `"tool_calls":[{"id":"x","function":{"arguments":""}}]`,
	`"tool_calls":[{"custom":{"name":"f"}}]`, `"tool_calls":[{"custom":{"input":"a"}}]`, `"tool_calls":[]`,
	`"function_call":{"name":"f","arguments":""}`, `"function_call":{"arguments":"{}"}`, `"function_call":null`,
	`"audio":{"data":"a"}`, `"audio":{"transcript":"a"}`, `"audio":{"id":"x"}`, `"token_ids":[5]`, `"token_ids":[]`,
	`"image":{"a":1}`, `"video":"a"`, `"film":""`, `"text":"a"`, `"logprobs":null`, `"name":"a"`,
}

// faults are values of a member error, most of which are none.
var faults = []string{
	"null", "false", "0", `""`, "{}", "[]", `{"code":0,"message":""}`, `[null]`, `"broken"`, "true", "5",
	`{"message":"broken","code":500}`, `{"code":500}`, `["broken"]`,
}

// flat are members that may be an error's, and others.
var flat = []string{
	`"error":{"message":"broken"}`, `"error":{}`, `"error":null`, `"object":"error"`, `"type":"error"`, `"object":"chunk"`,
	`"error_code":50001`, `"error_code":0`, `"message":"broken"`, `"message":""`, `"detail":"gone"`, `"errors":[]`,
	`"error_msg":"broken"`, `"msg":"broken"`, `"text":"broken"`, `"detail":{"message":"broken"}`, `"id":"x"`,
}
