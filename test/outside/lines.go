package outside

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"replayd/internal/synth"
)

// ledgerStart is how a line of records begins that is about a workload and no request.
var ledgerStart = []byte(`{"ledger":`)

// Lines reads a file of JSON, a value on each line. A last one that is not whole, as while somebody writes it, is left out;
// torn says that there was one. Ledgers among replayd's records are left out too.
func Lines[T any](t *testing.T, path string) (all []T, torn bool) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := json.NewDecoder(bufio.NewReader(f))
	for {
		var line json.RawMessage
		err := d.Decode(&line)
		if torn = errors.Is(err, io.ErrUnexpectedEOF); torn || errors.Is(err, io.EOF) {
			return all, torn
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if bytes.HasPrefix(line, ledgerStart) {
			continue
		}
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, v)
	}
}

// Conversation writes to a file the rows before an offset, 0 for all, of Mooncake's conversation trace in the folder
// REPLAYD_TRACES; without it of the bundled sample. It reads no more of them than their time.
func Conversation(t *testing.T, path string, to time.Duration) {
	t.Helper()
	whole := synth.Sample
	if dir := os.Getenv("REPLAYD_TRACES"); dir != "" {
		var err error
		if whole, err = os.ReadFile(filepath.Join(dir, "mooncake_conversation.jsonl")); err != nil {
			t.Fatal(err)
		}
	} else {
		t.Log("REPLAYD_TRACES is not set: the bundled sample stands in for the real trace")
	}
	first, end := int64(0), 0 // ms, bytes
	for line := range bytes.Lines(whole) {
		var row struct{ Timestamp int64 } // ms
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		if end == 0 {
			first = row.Timestamp
		}
		if to > 0 && time.Duration(row.Timestamp-first)*time.Millisecond >= to {
			break
		}
		end += len(line)
	}
	if err := os.WriteFile(path, whole[:end], 0o644); err != nil {
		t.Fatal(err)
	}
}
