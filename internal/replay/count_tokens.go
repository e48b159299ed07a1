package replay

import (
	"encoding/json"

	"replayd/internal/trace"
)

// countInput counts the tokens of a row's own content: its text, the contents of messages (which may be other than the
// row's own), or those of its payload. It counts neither the tokens that a chat template adds, nor tools.
func countInput(rec *trace.Record, messages json.RawMessage, count func([]byte) int) int {
	switch {
	case rec.Text != "":
		return count([]byte(rec.Text))
	case messages != nil:
		return countContents(messages, count)
	case rec.Payload != nil:
		var payload struct {
			Messages json.RawMessage `json:"messages"`
			Prompt   json.RawMessage `json:"prompt"`
		}
		if json.Unmarshal(rec.Payload, &payload) != nil {
			return 0
		}
		return countContents(payload.Messages, count) + countText(payload.Prompt, count)
	}
	return 0
}

func countContents(messages json.RawMessage, count func([]byte) int) (tokens int) {
	var all []struct {
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(messages, &all) != nil {
		return 0
	}
	for _, m := range all {
		tokens += countText(m.Content, count)
	}
	return tokens
}

// countText counts the tokens of a string, or of the strings in a list, which may be parts of a message.
func countText(text json.RawMessage, count func([]byte) int) (tokens int) {
	var s string
	if json.Unmarshal(text, &s) == nil {
		if s == "" {
			return 0
		}
		return count([]byte(s))
	}
	var list []json.RawMessage
	if json.Unmarshal(text, &list) != nil {
		return 0
	}
	for _, part := range list {
		var p struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(part, &p) == nil && p.Text != "" {
			tokens += count([]byte(p.Text))
		} else if json.Unmarshal(part, &s) == nil && s != "" {
			tokens += count([]byte(s))
		}
	}
	return tokens
}
