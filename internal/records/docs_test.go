package records

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/measure"
	"replayd/test/outside"
)

// The table in docs/reference/file-formats.md has each field of a record once, in the order of the line.
func TestDocumentedFieldsAreThoseOfARecord(t *testing.T) {
	rows, err := outside.Fields("../../docs/reference/file-formats.md", "## Records", "field")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(outside.Names(rows), keysOf(t, appendRecord(nil, &measure.Request{}))); diff != "" {
		t.Errorf("docs/reference/file-formats.md and the record (-document +record):\n%s", diff)
	}
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
