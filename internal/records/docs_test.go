package records

import (
	"bytes"
	"encoding/json"
	"testing"

	"replayd/internal/measure"
	"replayd/test/outside"
)

func TestDocumentedFieldsAreThoseOfARecord(t *testing.T) {
	outside.HoldFields(t, "## Records", keysOf(t, appendRecord(nil, &measure.Request{})))
}

// keysOf returns the keys of a JSON object without nested objects, in their order.
func keysOf(t *testing.T, line []byte) (keys []string) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(line))
	for _, err := d.Token(); d.More(); _, err = d.Token() { // the brace, later a value
		key, err2 := d.Token()
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		keys = append(keys, key.(string))
	}
	return keys
}
