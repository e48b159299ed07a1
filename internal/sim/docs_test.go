package sim

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"replayd/test/outside"
)

// The table in docs/reference/file-formats.md has each field of the log once, in the order of the line. Only the fields
// that a line can lack are marked as optional.
func TestDocumentedFieldsAreThoseOfTheLog(t *testing.T) {
	rows, err := outside.Fields("../../docs/reference/file-formats.md", "## Simulator log", "field")
	if err != nil {
		t.Fatal(err)
	}
	type described struct {
		Name     string
		Optional bool
	}
	var want, got []described
	for _, row := range rows {
		want = append(want, described{row[0], strings.HasPrefix(row[2], "optional")})
	}
	for field := range reflect.TypeFor[LogEntry]().Fields() {
		name, option, _ := strings.Cut(field.Tag.Get("json"), ",")
		got = append(got, described{name, option == "omitempty"})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/reference/file-formats.md and the log (-document +log):\n%s", diff)
	}
}
