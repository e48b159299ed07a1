//go:build peers

package peers_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite testdata/requests")

// listed is the number of requests in a golden file; its digest covers all of them.
const listed = 10

// frozen compares the requests of a command with its golden file: every body, and in an
// open loop every planned instant. In a closed loop an answer decides when the next
// request is due, so there is no instant to compare. An intended difference needs `go test
// -tags peers -run CommandLines ./test/peers/ -update`, and its reason in the commit.
func (s seen) frozen(t *testing.T, name, dir string, open bool) {
	t.Helper()
	if os.Getenv("REPLAYD_TRACES") == "" {
		t.Log("REPLAYD_TRACES is not set: the golden requests are those of the public traces, and nothing is compared")
		return
	}
	due := map[string]time.Duration{}
	if open {
		due = dueOffsets(t, dir)
	}
	var lines []string
	for _, r := range byRow(t, s.all) {
		line := fmt.Sprintf("%s %s stream=%v messages=%d prompt_tokens=%d max_tokens=%d body=%s", r.ID, r.API, r.Stream, r.Messages, r.PromptTokens, r.MaxTokens, r.Body)
		if open {
			at, ok := due[r.ID]
			if !ok {
				t.Errorf("%s: want it in the export", r.ID)
			}
			line += " due=" + at.String()
		}
		lines = append(lines, line)
	}
	got := fmt.Sprintf("%d requests, instants: %v, sha256 of their lines: %x\n%s\n", len(lines), open,
		sha256.Sum256([]byte(strings.Join(lines, "\n"))), strings.Join(lines[:min(listed, len(lines))], "\n"))
	path := filepath.Join("testdata", "requests", fileName(name)+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: the requests are not those of before\nwant %s\ngot  %s", path, want, got)
	}
}

// dueOffsets returns the planned instants by request id, since the first one.
func dueOffsets(t *testing.T, dir string) map[string]time.Duration {
	t.Helper()
	first, all := int64(0), map[string]int64{}
	for _, folder := range folders(t, dir) {
		for _, e := range export(t, folder) {
			if all[e.Metadata.RequestID] = e.Metadata.Due; first == 0 || e.Metadata.Due < first {
				first = e.Metadata.Due
			}
		}
	}
	offsets := map[string]time.Duration{}
	for id, due := range all {
		offsets[id] = time.Duration(due - first)
	}
	return offsets
}

// open reports whether a trace's timestamps plan the command's instants. Those of users depend on their answers.
func (p peer) open() bool {
	return strings.Contains(p.typed, "--fixed-schedule") || strings.Contains(p.typed, "--trace-mode trace")
}

// fileName returns a command's name with only the characters of a file name.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
}
