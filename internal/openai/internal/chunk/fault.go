package chunk

import (
	"bytes"
	"encoding/json"
	"slices"
)

// MaxMessage bounds the text of an error, in bytes.
const MaxMessage = 4 << 10

// faultKeys are the members of a chunk that can report an error: the error, what makes the chunk one, and the texts.
// The last of them is a text of an error only if something else makes the chunk one.
var faultKeys = [...]string{
	"error", "object", "type", "error_code", "message", "error_msg", "msg", "detail", "errors", "text",
}

// fails reports whether a chunk is an error, and its text: the server's own, else the chunk itself.
func (c *Chunk) fails(data []byte) (failed bool, message string) {
	var found [len(faultKeys)]value
	w := scanner{b: data}
	w.object(func(key []byte) (ok bool) {
		i := slices.IndexFunc(faultKeys[:], func(k string) bool { return k == string(key) })
		if i < 0 {
			return w.skip()
		}
		found[i], ok = w.value()
		return ok
	})
	object, kind, code, texts := found[1], found[2], found[3], found[4:]
	for _, fault := range []value{found[0], c.fault} {
		if message, failed = fault.fault(); failed {
			return true, message
		}
	}
	failed = object.is("error") || kind.is("error") || !code.empty()
	switch bare := c.Bare && !c.Usage.Set && !c.Timings.Set; {
	case !failed && !bare:
		return false, ""
	case !failed:
		texts = texts[:len(texts)-1]
	}
	for _, v := range texts {
		if text, says := v.fault(); says {
			return true, text
		}
	}
	if !failed {
		return false, ""
	}
	return true, string(data[:min(len(data), MaxMessage)])
}

// fault returns the text of an error value, possibly cut. failed is false for a value that is empty, which means no
// error.
func (v value) fault() (words string, failed bool) {
	if v.empty() {
		return "", false
	}
	if len(v) <= MaxMessage {
		d := json.NewDecoder(bytes.NewReader(v))
		d.UseNumber() // a number too large for a float64 is still valid JSON
		var e any
		if d.Decode(&e) != nil {
			return "", true // the scanner has validated it
		}
		return messageOf(e), true
	}
	var message value
	v.members(func(_ string, said value) { message = said }, "message")
	if message.some() && message[0] == '"' {
		v = message
	}
	if v[0] != '"' {
		return string(v[:min(len(v), MaxMessage)]), true
	}
	said, _ := appendUnquoted(nil, v[1:len(v)-1], MaxMessage)
	return string(said), true
}

// empty reports whether there is no value, or one that says nothing.
func (v value) empty() bool {
	w := scanner{b: v}
	return len(v) == 0 || w.nothing()
}

// nothing parses a value that is valid, and reports whether it says nothing: null, false, a zero, "", and a list or an
// object of such values.
func (w *scanner) nothing() bool {
	nothing := true
	each := func() bool {
		nothing = w.nothing() && nothing
		return true
	}
	switch w.peek() {
	case '{':
		w.object(func([]byte) bool { return each() })
		return nothing
	case '[':
		w.array(each)
		return nothing
	}
	v, _ := w.value()
	if v[0] == '-' || '0' <= v[0] && v[0] <= '9' {
		end := bytes.IndexAny(v, "eE")
		if end < 0 {
			end = len(v)
		}
		return !bytes.ContainsAny(v[:end], "123456789")
	}
	return string(v) == "null" || string(v) == "false" || string(v) == `""`
}

// ErrorText returns the message in the body of an error answer, and whether the body is an error in JSON, in one of the
// forms in docs/reference/answers.md. Of another body the text is the body.
func ErrorText(body []byte) (text string, isError bool) {
	var c Chunk
	if c.Read(body, nil) && c.Failed {
		return c.Message, true
	}
	return string(body), false
}

// messageOf returns the text of an error value; "" if it has none.
func messageOf(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case map[string]any:
		if text, _ := v["message"].(string); text != "" {
			return text
		}
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return "" // it came from valid JSON
	}
	return string(raw)
}
