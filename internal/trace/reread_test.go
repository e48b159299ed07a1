package trace

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// A row that was shed is read again from its line, with the lengths that it has by then.
func TestReread(t *testing.T) {
	lines := []string{
		`{"input_length":1025,"output_length":3,"hash_ids":[1,2,3]}`,
		`{"text_input":"hello","session_id":"s"}`,
		`{"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function"}],"extra":{"a":1}}`,
	}
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	if err := os.WriteFile(path, []byte("\n"+strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := f.Rows(0)
	if err != nil {
		t.Fatal(err)
	}
	start := int64(1)
	for i, line := range lines {
		r, err := rows.Next()
		if err != nil {
			t.Fatal(err)
		}
		f.starts = append(f.starts, start)
		start += int64(len(line)) + 1
		shed := r
		shed.Shed()
		if shed.Blocks != nil || shed.Text != "" || shed.Messages != nil || shed.Tools != nil || shed.Extra != nil {
			t.Errorf("row %d: want nothing to send, got %+v", i, shed)
		}
		if r.InputTokens > 0 {
			r.InputTokens, shed.InputTokens = 600, 600 // clipped
		}
		if again, err := f.Reread(shed); err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("row %d: want %+v, got %+v, %v", i, r, again, err)
		}
	}
	if _, err := f.Reread(Record{Number: 3, Line: 5}); !errors.Is(err, errNoPlace) {
		t.Errorf("a row without a place: got %v", err)
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("x", 10)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Reread(Record{Line: 2}); !errors.Is(err, ErrChanged) {
		t.Errorf("after the file changed: want %v, got %v", ErrChanged, err)
	}
}
