package measure

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"replayd/test/outside"
)

// The table in docs/reference/file-formats.md has each field of a ledger line once, in the order of the line.
func TestDocumentedFieldsAreThoseOfALedger(t *testing.T) {
	rows, err := outside.Fields("../../docs/reference/file-formats.md", "## Ledgers", "field")
	if err != nil {
		t.Fatal(err)
	}
	var written []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[LedgerLine]()) {
		if name := field.Tag.Get("json"); name != "-" && !field.Anonymous {
			written = append(written, name)
		}
	}
	if diff := cmp.Diff(outside.Names(rows), written); diff != "" {
		t.Errorf("docs/reference/file-formats.md and the ledger (-document +ledger):\n%s", diff)
	}
}
