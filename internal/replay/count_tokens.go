package replay

import (
	"encoding/json"

	"replayd/internal/trace"
)

// countInput counts the tokens of a row's own content: its text, the contents of messages (which may be other than the
// row's own), or those of its payload. It counts neither the tokens that a chat template adds, nor tools.
func countInput(rec *trace.Record, messages json.RawMessage, count func([]byte) (int, error)) (int, error) {
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
			return 0, nil
		}
		tokens, err := countContents(payload.Messages, count)
		if err != nil {
			return 0, err
		}
		more, err := countText(payload.Prompt, count)
		return tokens + more, err
	}
	return 0, nil
}

func countContents(messages json.RawMessage, count func([]byte) (int, error)) (tokens int, err error) {
	var all []struct {
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(messages, &all) != nil {
		return 0, nil
	}
	for _, m := range all {
		n, err := countText(m.Content, count)
		if err != nil {
			return 0, err
		}
		tokens += n
	}
	return tokens, nil
}

// countText counts the tokens of a string, or of the strings in a list, which may be parts of a message.
func countText(text json.RawMessage, count func([]byte) (int, error)) (tokens int, err error) {
	var s string
	if json.Unmarshal(text, &s) == nil {
		if s == "" {
			return 0, nil
		}
		return count([]byte(s))
	}
	var list []json.RawMessage
	if json.Unmarshal(text, &list) != nil {
		return 0, nil
	}
	for _, part := range list {
		var p struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(part, &p) != nil || p.Text == "" {
			p.Text = ""
			_ = json.Unmarshal(part, &p.Text) // a part may be a string alone; others have no text
		}
		if p.Text == "" {
			continue
		}
		n, err := count([]byte(p.Text))
		if err != nil {
			return 0, err
		}
		tokens += n
	}
	return tokens, nil
}
