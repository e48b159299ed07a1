package comparison

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"replayd/internal/canary"
)

// No byte of a state file can change unnoticed, none can be missing, and each field is known.
func TestSealedState(t *testing.T) {
	one, err := os.ReadFile(filepath.Join("testdata", "saved_comparison.json"))
	if err != nil {
		t.Fatal(err)
	}
	one = bytes.TrimSpace(one)
	known := json.NewDecoder(bytes.NewReader(one))
	known.DisallowUnknownFields()
	if err := known.Decode(new(savedComparison)); err != nil {
		t.Errorf("a field of the file is not known any more: %v", err)
	}
	path := filepath.Join(t.TempDir(), "state")
	if err := writeState(path, stateFile{Version: stateVersion, Comparisons: []json.RawMessage{one}}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, broken, err := readState(path)
	if err != nil || broken != nil || len(got) != 1 || !bytes.Equal(got[0].text, one) {
		t.Fatalf("got %d comparisons, %v, %v", len(got), broken, err)
	}
	refused := func(what string, at int, text []byte) {
		if _, err := parseState(text); err == nil {
			t.Errorf("byte %d %s: it is read", at, what)
		}
	}
	bits := 8
	if testing.Short() {
		bits = 1
	}
	for i := range text {
		for bit := range bits {
			flipped := bytes.Clone(text)
			flipped[i] ^= 1 << bit
			refused("flipped", i, flipped)
		}
		refused("is the end", i, text[:i])
		refused("is missing", i, slices.Delete(bytes.Clone(text), i, i+1))
	}
	refused("is followed", len(text), append(text, ' '))
	refused("begins version 1", 0, bytes.Replace(text, []byte(`"version":2`), []byte(`"version":1`), 1))
}

// Evidence of a verdict is that of the rules by which it was made. Evidence of a watch is no verdict.
func TestIdentityOfTheRules(t *testing.T) {
	for mode, text := range map[canary.Mode]string{
		canary.ModeVerdict: fmt.Sprintf(`["rows","given",%d]`, canary.Rules), canary.ModeWatch: `["rows","given"]`,
	} {
		o := canary.Defaults()
		o.Mode = mode
		got := New(Options{Options: o, Given: []any{"given"}}).identityOf("rows")
		if want := fmt.Sprintf("%x", sha256.Sum256([]byte(text))); got != want {
			t.Errorf("%s: got %s, want that of %s", mode, got, text)
		}
	}
}
