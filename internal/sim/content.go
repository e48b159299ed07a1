package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// source adds the texts and ids of a body to a prompt, including lifted parts.
type source struct {
	parts  []lifted
	prompt *prompt
}

func (s source) messages(ms []message) error {
	if len(ms) == 0 {
		return errors.New("messages: want at least one message, got none")
	}
	for i, m := range ms {
		if err := s.content(m.Content); err != nil {
			return fmt.Errorf("messages[%d].content: %w", i, err)
		}
	}
	return nil
}

// content adds a text, a list of {"type": "text"} parts, or nothing, as in an assistant message that only calls tools.
func (s source) content(raw json.RawMessage) error {
	switch {
	case len(raw) == 0 || raw[0] == 'n':
		return nil
	case raw[0] == '"':
		return s.text(raw)
	}
	var list []struct {
		Type string          `json:"type"`
		Text json.RawMessage `json:"text"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return errors.New("want a string or a list of text parts")
	}
	for _, part := range list {
		if part.Type != "text" || len(part.Text) == 0 || part.Text[0] != '"' {
			return errors.New(`want only parts {"type": "text", "text": "…"}`)
		}
		if err := s.text(part.Text); err != nil {
			return err
		}
	}
	return nil
}

// completion adds a text, a list of token ids, or a list that holds exactly one of these.
func (s source) completion(raw json.RawMessage) error {
	err := s.one(raw)
	if err != nil {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil || len(list) != 1 || s.one(list[0]) != nil {
			return err
		}
	}
	if s.prompt.tokens == 0 {
		return errors.New("prompt: want at least one token, got none")
	}
	return nil
}

// one adds a text or a list of token ids. On an error it adds nothing.
func (s source) one(raw json.RawMessage) error {
	if len(raw) > 0 && raw[0] == '"' {
		return s.text(raw)
	}
	if part, ok := s.part(bytes.TrimSuffix(bytes.TrimPrefix(raw, []byte("[")), []byte("]"))); ok && part.ids {
		s.ids(part.text)
		return nil
	}
	if len(raw) > 0 && raw[0] == '[' && endOfIDs(raw, 0) == len(raw) {
		s.ids(raw)
		return nil
	}
	return errors.New("prompt: want a string, a list of token ids from 0 to 2147483647, or a list of exactly one of these")
}

// text adds a JSON string.
func (s source) text(raw json.RawMessage) error {
	if part, ok := s.part(raw); ok {
		s.prompt.words(part.text)
		return nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	s.prompt.words([]byte(text))
	return nil
}

// ids adds an array that endOfIDs has accepted.
func (s source) ids(array []byte) {
	for rest := array[1:]; len(rest) > 0; {
		id, after, ok := cutID(skipSpace(rest))
		if !ok {
			return
		}
		s.prompt.id(id)
		rest = skipSpace(after)[1:] // the comma, or the bracket
	}
}

// value returns a string as it was in the body.
func (s source) value(decoded string) string {
	if digits, ok := strings.CutPrefix(decoded, "\x00"); ok && len(s.parts) > 0 {
		if n, err := strconv.Atoi(digits); err == nil && n >= 0 && n < len(s.parts) {
			return string(s.parts[n].text)
		}
	}
	return decoded
}

// part returns the lifted part whose placeholder is raw.
func (s source) part(raw []byte) (lifted, bool) {
	digits, ok := bytes.CutPrefix(raw, []byte(`"\u0000`))
	if !ok || len(s.parts) == 0 {
		return lifted{}, false
	}
	n, err := strconv.Atoi(string(bytes.TrimSuffix(digits, []byte(`"`))))
	if err != nil || n < 0 || n >= len(s.parts) {
		return lifted{}, false
	}
	return s.parts[n], true
}
