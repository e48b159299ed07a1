//go:build real

package kubernetes_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// copied copies the chart into a folder that is not there yet.
func copied(t *testing.T, into string) {
	t.Helper()
	if err := os.CopyFS(into, os.DirFS(chart)); err != nil {
		t.Fatal(err)
	}
}

// notes returns helm's text after an installation. Helm prints it
// only with a cluster, so a copy of the chart has it as an object.
func notes(t *testing.T, mode string, values ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "replayd")
	copied(t, dir)
	path := filepath.Join(dir, "templates", "NOTES.txt")
	text := "{{- define \"notes\" }}" + read(t, path) + "{{ end -}}\nkind: Notes\nmetadata: {name: notes}\ntext: |{{ include \"notes\" . | nindent 2 }}\n"
	if err := os.WriteFile(filepath.Join(dir, "templates", "notes.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	return one[struct{ Text string }](t, objects(t, render(t, dir, append(plain(mode), values...)...)), "Notes", "").Text
}

// The notes fit the mode.
func TestNotes(t *testing.T) {
	for mode, want := range map[string][]string{
		"deployment": {
			"kubectl -n test rollout status deployment/canary-replayd\n", "against http://vllm:8000",
			"9797/live", "sample, 3 minutes", "canary-replayd.test:9797",
		},
		"shards": {"rollout status statefulset/canary-replayd\n", "shards.count", "canary-replayd-shards.test:9797"},
		"job": {
			"until kubectl -n test get job/canary-replayd-1 ", "| grep -wE 'Complete|Failed'; do sleep",
			"grep 'entered loop'", "/records/NAME.jsonl", "once, from 2026-01-02T15:04:00Z on.",
			"The next run needs a new job.start", "claim canary-replayd-records",
			"kubectl -n test delete pvc canary-replayd-records\n",
		},
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

// The notes name what the values have named otherwise.
func TestNotesFollowValues(t *testing.T) {
	has(t, notes(t, "job", "--set", "namespaceOverride=loads,records.existingClaim=kept"),
		"kubectl -n loads get pods", "on the volume of records.")
	has(t, notes(t, "deployment", "--set", "namespaceOverride=loads,service.port=80"), "canary-replayd.loads:80.")
}

// If each shard finds the start by itself, the shards may find different ones.
func TestNotesWarn(t *testing.T) {
	if text := notes(t, "job", "--set", "job.start=next:1m"); !strings.Contains(text, "on either side of its end begin apart") || !strings.Contains(text, "date -u -d") {
		t.Errorf("want a warning and a way out, got\n%s", text)
	}
}
