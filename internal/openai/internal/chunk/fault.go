package chunk

import (
	"bytes"
	"encoding/json"
)

// MaxMessage bounds the text of an error, in bytes.
const MaxMessage = 4 << 10

// fault returns the text of an error value, possibly cut. failed is false for values that mean no error: null, false and
// "".
func (v value) fault() (words string, failed bool) {
	switch string(v[:min(len(v), len("false")+1)]) {
	case "", "null", "false", `""`:
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

// ErrorText returns the message in the body of an error answer. Engines use different forms: {"error":{"message":…}},
// {"error":"…"}, {"message":…}, FastAPI's {"detail":…}, or text that is not JSON.
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
