package replay

import (
	"encoding/json"

	"replayd/internal/trace"
)

const assistant = "assistant"

// answered puts what the server answered into a row's own messages, in the place of the last assistant's messages that it
// brings: each turn before this one has one of them, and what stands before those is history from the start. A message that
// calls tools stays, because the messages that follow hold its result.
func answered(messages json.RawMessage, answers [][]byte) json.RawMessage {
	if len(answers) == 0 {
		return messages
	}
	var all []json.RawMessage
	if json.Unmarshal(messages, &all) != nil {
		return messages // the server may say what is wrong with them
	}
	for i, left := len(all)-1, answers; i >= 0 && len(left) > 0; i-- {
		var m struct {
			Role  string            `json:"role"`
			Tools []json.RawMessage `json:"tool_calls"`
		}
		if json.Unmarshal(all[i], &m) != nil || m.Role != assistant {
			continue
		}
		answer := left[len(left)-1]
		left = left[:len(left)-1]
		if answer == nil || len(m.Tools) > 0 {
			continue
		}
		said, err := json.Marshal(struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		}{assistant, string(answer)})
		if err == nil { // it cannot fail
			all[i] = said
		}
	}
	out := []byte{'['}
	for i, m := range all {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, m...)
	}
	return append(out, ']')
}

// align gives the answers their places among the assistant's parts of a row, as answered does.
func align(parts []trace.Part, answers [][]byte) [][]byte {
	if len(answers) == 0 || len(parts) == 0 {
		return nil
	}
	n := 0
	for _, p := range parts {
		if p.Role == assistant {
			n++
		}
	}
	if n <= len(answers) {
		return answers[len(answers)-n:]
	}
	return append(make([][]byte, n-len(answers)), answers...)
}
