//go:build real

package kubernetes_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// notes returns helm's text after an installation. Helm prints it
// only with a cluster, so a copy of the chart has it as an object.
func notes(t *testing.T, mode string, values ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "replayd")
	if err := filepath.WalkDir(chart, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(chart, path)
		text := read(t, path)
		if filepath.Base(path) == "NOTES.txt" {
			name = "templates/notes.yaml"
			text = "{{- define \"notes\" }}" + text + "{{ end -}}\nkind: Notes\nmetadata: {name: notes}\ntext: |{{ include \"notes\" . | nindent 2 }}\n"
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)
	}); err != nil {
		t.Fatal(err)
	}
	return one[struct{ Text string }](t, objects(t, render(t, dir, append(plain(mode), values...)...)), "Notes", "").Text
}

// The notes fit the mode.
func TestNotes(t *testing.T) {
	for mode, want := range map[string][]string{
		"deployment":      {"kubectl -n test rollout status deployment/canary-replayd\n", "against http://vllm:8000", "9797/live", "sample, 3 minutes", "canary-replayd.test:9797"},
		"shards":          {"rollout status statefulset/canary-replayd\n", "shards.count", "canary-replayd-shards.test:9797"},
		"job":             {"until kubectl -n test get job/canary-replayd-1 ", "grep 'entered loop'", "/records/NAME.jsonl", "once, from 2026-01-02T15:04:00Z on.", "The next run needs a new job.start", "claim canary-replayd-records", "kubectl -n test delete pvc canary-replayd-records\n"},
		"sidecar-example": {"This is an EXAMPLE: a simulated engine", "deployment/canary-replayd -c replayd"},
	} {
		text := notes(t, mode)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: want %q in\n%s", mode, w, text)
			}
		}
	}
}

// If each shard finds the start by itself, the shards may find different ones.
func TestNotesWarn(t *testing.T) {
	if text := notes(t, "job", "--set", "job.start=next:1m"); !strings.Contains(text, "on either side of its end begin apart") || !strings.Contains(text, "date -u -d") {
		t.Errorf("want a warning and a way out, got\n%s", text)
	}
}

// The command that waits for a Job ends when the Job has succeeded or failed, and not before. kubectl is a stand-in:
// the lines of a file are the Job's conditions at each look.
func TestNotesWait(t *testing.T) {
	var command string
	for line := range strings.Lines(notes(t, "job")) {
		if strings.HasPrefix(strings.TrimSpace(line), "until ") {
			command = line
		}
	}
	for end, conditions := range map[string]string{"Failed": "\nFailureTarget\nFailureTarget Failed\n", "Complete": "\nSuccessCriteriaMet\nSuccessCriteriaMet Complete\n"} {
		dir := t.TempDir()
		for name, text := range map[string]string{"kubectl": "head -n 1 " + dir + "/conditions; sed -i 1d " + dir + "/conditions", "sleep": "exit 0"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "conditions"), []byte(conditions), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		c := exec.CommandContext(ctx, "sh", "-c", command)
		c.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
		said, err := c.CombinedOutput()
		cancel()
		if left := read(t, filepath.Join(dir, "conditions")); err != nil || left != "" || !strings.Contains(string(said), end) {
			t.Errorf("%s: want %q to end with the Job, got %v, %q, and looks not taken: %q", end, command, err, said, left)
		}
	}
}
