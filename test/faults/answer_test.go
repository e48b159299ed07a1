//go:build faults

package faults_test

import (
	"encoding/json"
	"strings"
)

// judge reads the body that the client was given, by the rules of the API.
func (x *exchange) judge(f fault) {
	if !x.stream {
		x.finish = x.complete || f.framing == byClose && f.ending == closed && json.Valid(x.given)
		return
	}
	var event string // its data, up to its blank line
	take := func(ended bool) {
		var chunk struct {
			Choices []struct {
				Delta  struct{ Content string }
				Text   string
				Finish *string `json:"finish_reason"`
			}
		}
		switch {
		case event == "[DONE]":
			x.done = x.done || ended
			x.finish = true
		case json.Unmarshal([]byte(event), &chunk) == nil:
			for _, c := range chunk.Choices {
				x.text += c.Delta.Content
				x.content = x.content || ended && c.Delta.Content != ""
				x.finish = x.finish || c.Finish != nil
			}
		}
		event = ""
	}
	for line := range strings.Lines(string(x.given)) {
		text := strings.TrimRight(line, "\r\n")
		if data, ok := strings.CutPrefix(text, "data: "); ok {
			event = data
		} else if text == "" && strings.HasSuffix(line, "\n") {
			take(true)
		}
	}
	take(false)
}
