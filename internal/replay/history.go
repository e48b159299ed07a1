package replay

import (
	"encoding/json"

	"replayd/internal/trace"
)

const assistant = "assistant"

// answered replaces assistant messages in a row's messages by the server's answers. Each earlier turn has one of the last
// assistant messages, in order. Messages before those are fixed history. A message with tool calls is kept, because the
// following messages hold the result.
func answered(messages json.RawMessage, answers [][]byte) json.RawMessage {
	if len(answers) == 0 {
		return messages
	}
	var all []json.RawMessage
	if json.Unmarshal(messages, &all) != nil {
		return messages // the server's answer may say what is wrong with them
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
		if err == nil { // Marshal of two strings cannot fail
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

// align assigns the answers to the assistant parts of a row, like answered.
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
