package sim

import (
	"reflect"
	"strings"
	"testing"

	"replayd/test/outside"
)

// The fields that a line can lack are marked as optional.
func TestDocumentedFieldsAreThoseOfTheLog(t *testing.T) {
	var names []string
	var optional []bool
	for field := range reflect.TypeFor[LogEntry]().Fields() {
		name, option, _ := strings.Cut(field.Tag.Get("json"), ",")
		names, optional = append(names, name), append(optional, option == "omitempty")
	}
	for i, row := range outside.HoldFields(t, "## Simulator log", names) {
		if marked := strings.HasPrefix(row[2], "optional"); i < len(optional) && marked != optional[i] {
			t.Errorf("%s: want it marked as optional: %t, got %q", row[0], optional[i], row[2])
		}
	}
}
