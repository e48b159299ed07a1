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

// ledgerStart is the start of a record line about a workload instead of a request.
var ledgerStart = []byte(`{"ledger":`)

// Lines reads a file with one JSON value per line. It leaves out an incomplete last line, as while somebody writes it,
// and torn reports whether there was one. It also leaves out ledgers in replayd's records.
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

// Conversation writes the rows before an offset (0: all) of Mooncake's conversation trace in the folder REPLAYD_TRACES
// to a file, or of the bundled sample if REPLAYD_TRACES is not set. It reads nothing of them but their time.
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
