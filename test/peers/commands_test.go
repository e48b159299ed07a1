//go:build peers

package peers_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The documents show what users of AIPerf and TraceReplay know; CI has them beside the traces. Each of their command
// lines has a case here, typed as it is there, and each case is in a document.
func TestEveryCommandOfTheDocumentsHasACase(t *testing.T) {
	folder := os.Getenv("REPLAYD_REFERENCE")
	if folder == "" {
		t.Skip("REPLAYD_REFERENCE is not set: it names the folder of the documents")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil || len(files) != 5 {
		t.Fatalf("want five documents in %s, got %d: %v", folder, len(files), err)
	}
	var documented []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documented = append(documented, commands(string(text))...)
	}
	kinds := map[string]int{}
	for _, c := range documented {
		kinds[strings.Join(strings.Fields(c)[:2], " ")]++
	}
	for kind, want := range map[string]int{"aiperf profile": 17, "aiperf plot": 7, "aiperf analyze-trace": 1, "python3 /trace_replay.py": 1} {
		if kinds[kind] != want {
			t.Errorf("%s: want %d command lines in the documents, found %d", kind, want, kinds[kind])
		}
	}
	var known []string
	for _, c := range cases() {
		known = append(known, c.typed)
	}
	for _, c := range documented {
		if !slices.Contains(known, c) {
			t.Errorf("no case for %s", c)
		}
	}
	for _, c := range known {
		if !slices.Contains(documented, c) {
			t.Errorf("in no document: %s", c)
		}
	}
}

// commands returns the command lines of both programs in a document's code blocks, with one blank between words.
func commands(text string) (found []string) {
	inside, command := false, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			inside, command = !inside, ""
			continue
		}
		if !inside || command == "" && !strings.HasPrefix(line, "aiperf ") && !strings.HasPrefix(line, "python3 /trace_replay.py") {
			continue
		}
		part, more := strings.CutSuffix(line, `\`)
		command += " " + part
		if !more {
			found = append(found, strings.Join(strings.Fields(command), " "))
			command = ""
		}
	}
	return found
}

func TestCommands(t *testing.T) {
	got := commands("text aiperf plot\n```bash\n# aiperf plot --dashboard --host 0.0.0.0\n  aiperf profile \\\n\t-m  x \\\n  --streaming\naiperf plot\n```\naiperf plot --no\n")
	if want := []string{"aiperf profile -m x --streaming", "aiperf plot"}; !slices.Equal(got, want) {
		t.Errorf("want %q, got %q", want, got)
	}
}
