package measure

import (
	"reflect"
	"strings"
	"testing"

	"replayd/test/outside"
)

func TestDocumentedFieldsAreThoseOfALedger(t *testing.T) {
	var written []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[LedgerLine]()) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "-" && !field.Anonymous {
			written = append(written, name)
		}
	}
	outside.HoldFields(t, "## Ledgers", written)
}
