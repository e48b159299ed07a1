package number

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
)

// An Object is a JSON object whose members keep their order: a key, its value, the next key, and so on.
type Object []any

// Add adds a member.
func (o *Object) Add(key string, value any) { *o = append(*o, key, value) }

// AddKnown adds a member if its value is known.
func (o *Object) AddKnown(known bool, key string, value any) {
	if known {
		o.Add(key, value)
	}
}

// MarshalJSON implements json.Marshaler. It leaves out members that are NaN or infinite. An encoder around it decides
// about characters of HTML.
func (o Object) MarshalJSON() ([]byte, error) {
	b := bytes.NewBufferString("{")
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	for i := 0; i+1 < len(o); i += 2 {
		if v, isFloat := o[i+1].(float64); isFloat && (math.IsNaN(v) || math.IsInf(v, 0)) {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		_ = e.Encode(fmt.Sprint(o[i])) // no string fails
		b.WriteByte(':')
		if err := e.Encode(o[i+1]); err != nil {
			return nil, fmt.Errorf("%v: %w", o[i], err)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
