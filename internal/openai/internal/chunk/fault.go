package chunk

import (
	"bytes"
	"encoding/json"
)

// MaxMessage bounds the words of an error that are kept, in bytes.
const MaxMessage = 4 << 10

// fault is the text of an error value. failed is false for the values that mean no error: null, false and "". A long text is cut.
func (v value) fault() (words string, failed bool) {
	switch string(v[:min(len(v), len("false")+1)]) {
	case "", "null", "false", `""`:
		return "", false
	}
	if len(v) <= MaxMessage {
		d := json.NewDecoder(bytes.NewReader(v))
		d.UseNumber() // a number too large for a float is still JSON
		var e any
		if d.Decode(&e) != nil {
			return "", true // a scanner has passed it
		}
		return messageOf(e), true
	}
	w := scanner{b: v}
	var message value
	w.object(func(key []byte) (ok bool) {
		if string(key) != "message" {
			return w.skip()
		}
		message, ok = w.value()
		return ok
	})
	if message.some() && message[0] == '"' {
		v = message
	}
	if v[0] != '"' {
		return string(v[:min(len(v), MaxMessage)]), true
	}
	said, _ := appendUnquoted(nil, v[1:len(v)-1], MaxMessage)
	return string(said), true
}

// ErrorText finds the message in the body of an error answer, which engines shape differently:
// {"error":{"message":…}}, {"error":"…"}, {"message":…}, FastAPI's {"detail":…}, or no JSON at all.
func ErrorText(body []byte) string {
	var shape struct {
		Error, Message, Detail any
	}
	if json.Unmarshal(body, &shape) != nil {
		return string(body)
	}
	for _, v := range []any{shape.Error, shape.Message, shape.Detail} {
		if text := messageOf(v); text != "" {
			return text
		}
	}
	return string(body)
}

// messageOf is the text of an error value; "" when it has none.
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
		return "" // it came out of JSON
	}
	return string(raw)
}
