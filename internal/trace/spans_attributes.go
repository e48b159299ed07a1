package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// decode reads an object. It reports whether the text is one.
func (o *object) decode(text json.RawMessage) bool {
	return len(text) > 0 && json.Unmarshal(text, &o.values) == nil && o.values != nil
}

// kindOf names the kind of a JSON value, for a fault that must not show the value: it may be a text of a user.
func kindOf(v json.RawMessage) string {
	if len(v) == 0 {
		return "none"
	}
	switch v[0] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "a list"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}

// word returns a string; "" if the value is none.
func (o *object) word(key string) (s string) {
	if v := o.value(key); len(v) == 0 || json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// tokens reads a count of tokens by its newer or its older name. It may be written as a text.
func (o *object) tokens(names ...string) (n int, given bool) {
	for _, name := range names {
		key := "gen_ai.usage." + name
		if v := o.value(key); v != nil {
			if text := bytes.Trim(v, `"`); isNumber(text) {
				o.values[key] = text
			}
			return o.count(key), true
		}
	}
	return 0, false
}

// readAttributes are the beginnings of the keys that are read.
var readAttributes = []string{"gen_ai.", "llm.request.type", "traceloop.span.kind", "openinference.span.kind", "http."}

func isNumber(text []byte) bool {
	_, err := strconv.ParseFloat(string(text), 64)
	return err == nil
}

const (
	maxAttributes = 1 << 16 // of a span, and events of a span
	maxNesting    = 32      // of a value in OTLP
)

// attributes returns the attributes of a span: an object, or OTLP's list of keys and values. The faults are o's.
func (o *object) attributes() (a object) {
	const key = "attributes"
	a.values = map[string]json.RawMessage{}
	v := o.value(key)
	switch {
	case v == nil:
	case v[0] == '{':
		if !a.decode(v) {
			o.fault(key, "an object", kindOf(v))
		}
	case v[0] != '[':
		o.fault(key, "an object, or a list of keys and values", kindOf(v))
	default:
		for i, text := range o.list(key, "a list of keys and values", maxAttributes) {
			e := object{}
			if !e.decode(text) || e.word("key") == "" {
				o.fault(fmt.Sprintf("%s[%d]", key, i), "an object with key and value", kindOf(text))
				continue
			}
			name := e.word("key")
			if !isRead(name) {
				continue
			}
			plain, ok := plainValue(e.value("value"), maxNesting)
			if !ok {
				o.fault(fmt.Sprintf("%s[%d].value", key, i), "an object with one value of OTLP", kindOf(e.value("value")))
				continue
			}
			a.values[name] = plain
		}
	}
	return a
}

func isRead(name string) bool {
	for _, beginning := range readAttributes {
		if strings.HasPrefix(name, beginning) {
			return true
		}
	}
	return false
}

// addEvents adds the attributes of a span's events, in which some conventions have the messages, to those of the span.
func (o *object) addEvents(a *object) {
	if v := o.value("events"); v == nil || v[0] != '[' {
		return
	}
	for i, text := range o.list("events", "a list of events", maxAttributes) {
		e := object{}
		if !e.decode(text) {
			continue
		}
		found := e.attributes()
		o.addFaults(fmt.Sprintf("events[%d]", i), e.faults)
		for key, v := range found.values {
			if strings.HasPrefix(key, "gen_ai.") && a.value(key) == nil {
				a.values[key] = v
			}
		}
	}
}

// plainValue returns a value of OTLP (AnyValue of opentelemetry-proto) as plain JSON. nil is null.
func plainValue(v json.RawMessage, nesting int) (plain json.RawMessage, ok bool) {
	o := object{}
	if len(v) == 0 {
		return nil, true
	}
	if !o.decode(v) || len(o.values) > 1 || nesting == 0 {
		return nil, false
	}
	for key, inner := range o.values {
		switch key {
		case "stringValue", "bytesValue":
			return inner, kindOf(inner) == "a string"
		case "intValue":
			plain = bytes.Trim(inner, `"`)
			_, err := strconv.ParseInt(string(plain), 10, 64)
			return plain, err == nil
		case "doubleValue", "boolValue":
			return inner, kindOf(inner) != "an object" && kindOf(inner) != "a list"
		case "arrayValue", "kvlistValue":
			return plainList(inner, key == "kvlistValue", nesting-1)
		}
		return nil, false
	}
	return nil, true
}

// plainList returns the values of a list, or the keys and values of an object.
func plainList(v json.RawMessage, keyed bool, nesting int) (plain json.RawMessage, ok bool) {
	list := struct{ Values []json.RawMessage }{}
	if json.Unmarshal(v, &list) != nil {
		return nil, false
	}
	ends := "[]"
	if keyed {
		ends = "{}"
	}
	plain = append(plain, ends[0])
	for i, element := range list.Values {
		if i > 0 {
			plain = append(plain, ',')
		}
		if keyed {
			e := object{}
			if !e.decode(element) || e.value("key") == nil || kindOf(e.value("key")) != "a string" {
				return nil, false
			}
			plain = append(append(plain, e.value("key")...), ':')
			element = e.value("value")
		}
		value, ok := plainValue(element, nesting)
		if !ok {
			return nil, false
		}
		if value == nil {
			value = json.RawMessage("null")
		}
		plain = append(plain, value...)
	}
	return append(plain, ends[1]), true
}
