package replay

import (
	"encoding/json"

	"replayd/internal/trace"
)

// countInput counts the tokens of a row's own content: its text, the contents of messages (which may be other than the
// row's own), or those of its payload. It counts neither the tokens that a chat template adds, nor tools.
func countInput(
	rec *trace.Record, messages json.RawMessage, count func([]byte) (int, error),
) (tokens int, err error) {
	var texts []string
	switch {
	case rec.Text != "":
		texts = []string{rec.Text}
	case messages != nil:
		texts = contents(messages)
	case rec.Payload != nil:
		var payload struct {
			Messages json.RawMessage `json:"messages"`
			Prompt   json.RawMessage `json:"prompt"`
		}
		if json.Unmarshal(rec.Payload, &payload) == nil {
			texts = append(contents(payload.Messages), textsIn(payload.Prompt)...)
		}
	}
	for _, text := range texts {
		if text == "" {
			continue
		}
		n, err := count([]byte(text))
		if err != nil {
			return 0, err
		}
		tokens += n
	}
	return tokens, nil
}

func contents(messages json.RawMessage) (texts []string) {
	var all []struct {
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(messages, &all) != nil {
		return nil
	}
	for _, m := range all {
		texts = append(texts, textsIn(m.Content)...)
	}
	return texts
}

// textsIn returns a string, or the strings in a list, which may be parts of a message.
func textsIn(text json.RawMessage) (texts []string) {
	var s string
	if json.Unmarshal(text, &s) == nil {
		return []string{s}
	}
	var list []json.RawMessage
	if json.Unmarshal(text, &list) != nil {
		return nil
	}
	for _, part := range list {
		var p struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(part, &p) != nil || p.Text == "" {
			p.Text = ""
			_ = json.Unmarshal(part, &p.Text) // a part may be a string alone; others have no text
		}
		texts = append(texts, p.Text)
	}
	return texts
}
