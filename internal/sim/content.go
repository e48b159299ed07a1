package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
)

func (p *prompt) messages(ms []message) error {
	if len(ms) == 0 {
		return errors.New("messages: want at least one message, got none")
	}
	for i, m := range ms {
		if err := p.content(m.Content); err != nil {
			return fmt.Errorf("messages[%d].content: %w", i, err)
		}
	}
	return nil
}

// content adds a text, a list of {"type": "text"} parts, or nothing, as in an assistant message that only calls tools.
func (p *prompt) content(raw json.RawMessage) error {
	switch {
	case len(raw) == 0 || raw[0] == 'n':
		return nil
	case raw[0] == '"':
		return p.text(raw)
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
		if err := p.text(part.Text); err != nil {
			return err
		}
	}
	return nil
}

// completion adds a text, a list of token ids, or a list that holds exactly one of these.
func (p *prompt) completion(raw json.RawMessage) error {
	err := p.one(raw)
	if err != nil {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil || len(list) != 1 || p.one(list[0]) != nil {
			return err
		}
	}
	if p.tokens == 0 {
		return errors.New("prompt: want at least one token, got none")
	}
	return nil
}

// one adds a text or a list of token ids. On an error it adds nothing.
func (p *prompt) one(raw json.RawMessage) error {
	if len(raw) > 0 && raw[0] == '"' {
		return p.text(raw)
	}
	var ids []uint32
	known := json.Unmarshal(raw, &ids) == nil && len(ids) > 0 && !bytes.Contains(raw, []byte("null"))
	if known && slices.Max(ids) <= math.MaxInt32 {
		for _, id := range ids {
			p.id(id)
		}
		return nil
	}
	return errors.New("prompt: want a string, a list of token ids from 0 to 2147483647, or a list of exactly one of these")
}

func (p *prompt) text(raw json.RawMessage) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	p.words([]byte(text))
	return nil
}
