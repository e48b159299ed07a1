package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"replayd/internal/fault"
)

// A field is one member of the body's JSON object, its value already JSON. A text is kept apart so that 800 KB are
// not copied twice: it is quoted when the message is put together.
type field struct {
	key   string
	value []byte
	text  []byte
	after []byte // what follows the text
}

// merge merges more into fields: an existing key keeps its position and gets the new value.
func merge(fields, more []field) []field {
	for _, f := range more {
		if i := slices.IndexFunc(fields, func(have field) bool { return have.key == f.key }); i >= 0 {
			fields[i] = f
		} else {
			fields = append(fields, f)
		}
	}
	return fields
}

// ready replaces a text that needs escapes by its JSON, so that only a copy remains to be done.
func (f field) ready() field {
	for _, c := range f.text {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			f.value = append(f.value, quote(string(f.text))...)
			f.value = append(f.value, f.after...)
			f.text, f.after = nil, nil
			return f
		}
	}
	f.value = append(f.value, '"')
	f.after = append([]byte{'"'}, f.after...)
	return f
}

// quote returns s as a JSON string in which <, > and & are not escaped.
func quote(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return []byte(`""`) // a string always encodes
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// fieldsOf renders a configured object, its keys sorted.
func fieldsOf(object map[string]any) ([]field, error) {
	if len(object) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, fault.At("extra_body", err)
	}
	return objectFields(raw)
}

// objectFields splits a JSON object into its fields, in order. If a key occurs twice, the last value is kept.
func objectFields(raw json.RawMessage) ([]field, error) {
	if raw == nil {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.Join(errors.New("want a JSON object"), err)
	}
	var fields []field
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("want a JSON object: %w", err)
		}
		key, _ := t.(string) // the decoder gives nothing else in this place
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("want a JSON object: %s: %w", key, err)
		}
		quoted := quote(key)
		fields = merge(fields, []field{{key: string(quoted[1 : len(quoted)-1]), value: value}})
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("want a JSON object: %w", err)
	}
	if d.More() {
		return nil, errors.New("want one JSON object, got more behind it")
	}
	return fields, nil
}
