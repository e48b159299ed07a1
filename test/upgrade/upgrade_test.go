// Package upgrade_test reads the files of earlier releases with this replayd: testdata has a folder for each release, with a configuration,
// records and the state of comparisons that the release itself wrote. Each file is read as it was then, or refused with the reason
// that the folder's refused.txt has. Figures that have another definition since are in its changed.json.
package upgrade_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"replayd/test/outside"
)

var binary string

func TestMain(m *testing.M) { os.Exit(outside.Main(m, &binary)) }

// releases are the folders of testdata, oldest first.
func releases(t *testing.T) (folders []string) {
	t.Helper()
	folders, err := filepath.Glob("testdata/*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("want the files of a release, got none, %v", err)
	}
	version := func(folder string) (v [3]int) {
		if n, err := fmt.Sscanf(filepath.Base(folder), "%d.%d.%d", &v[0], &v[1], &v[2]); n != 3 {
			t.Fatalf("%s: want a version such as 0.2.0: %v", folder, err)
		}
		return v
	}
	slices.SortFunc(folders, func(a, b string) int {
		one, other := version(a), version(b)
		return slices.Compare(one[:], other[:])
	})
	return folders
}

// refusals reads refused.txt: lines `FILE: reason`. Without it all files are read.
func refusals(t *testing.T, folder string) map[string]string {
	t.Helper()
	reasons := map[string]string{}
	text, err := os.ReadFile(filepath.Join(folder, "refused.txt"))
	if os.IsNotExist(err) {
		return reasons
	}
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		file, reason, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if readers[file] == nil || !ok || reason == "" {
			t.Fatalf("%s/refused.txt: want lines FILE: reason, with a file of %d, got %q", folder, len(readers), line)
		}
		reasons[file] = reason
	}
	return reasons
}

// wanted reads figures.json: what each file says, as read by the release that wrote it.
func wanted(t *testing.T, folder string) (figures map[string]any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "figures.json"))
	if err == nil {
		err = json.Unmarshal(text, &figures)
	}
	if err != nil {
		t.Fatal(err)
	}
	return figures
}

// changed returns a file's wanted figures with those that a later definition has changed: changed.json has their values, by
// path, and why. Without it none has changed.
func changed(t *testing.T, folder, file string, figures any) any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "changed.json"))
	if os.IsNotExist(err) {
		return figures
	}
	var changes map[string]struct {
		Why     string
		Figures map[string]any
	}
	if err == nil {
		err = json.Unmarshal(text, &changes)
	}
	if err != nil {
		t.Fatal(err)
	}
	for path, value := range changes[file].Figures {
		keys := strings.Split(path, "/")[1:]
		at := figures
		for _, key := range keys[:len(keys)-1] {
			at = member(at, key)
		}
		of, ok := at.(map[string]any)
		last := keys[len(keys)-1]
		if _, known := of[last]; !ok || !known || changes[file].Why == "" {
			t.Fatalf("%s/changed.json: %s: want the path of a figure of %s, and why it has changed", folder, path, file)
		}
		of[last] = value
	}
	return figures
}

// member returns an entry of a decoded object or list; nil: it has none.
func member(v any, key string) any {
	switch v := v.(type) {
	case map[string]any:
		return v[key]
	case []any:
		if i, err := strconv.Atoi(key); err == nil && i < len(v) {
			return v[i]
		}
	}
	return nil
}

// check reads a file of a folder and compares it with the wanted figures, or with the wanted reason of the refusal.
func check(t *testing.T, folder, file string) error {
	t.Helper()
	got, err := readers[file](t, copied(t, folder))
	reason, refused := refusals(t, folder)[file]
	switch {
	case refused && err == nil:
		return fmt.Errorf("want it refused: %s", reason)
	case refused && !strings.Contains(err.Error(), reason):
		return fmt.Errorf("want it refused with %q, got %w", reason, err)
	case refused:
		return nil
	case err != nil:
		return fmt.Errorf("want it read: %w", err)
	}
	return within("", changed(t, folder, file, wanted(t, folder)[file]), got)
}

func TestFilesOfReleases(t *testing.T) {
	for _, folder := range releases(t) {
		for file := range readers {
			t.Run(filepath.Base(folder)+"/"+file, func(t *testing.T) {
				t.Parallel()
				if err := check(t, folder, file); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// latest is the newest folder, whose files this replayd reads.
func latest(t *testing.T) string {
	t.Helper()
	all := releases(t)
	return all[len(all)-1]
}

// The files of a newer release are refused, and the reason names the version, or the key that is not known.
func TestNewerFilesAreRefused(t *testing.T) {
	for _, c := range []struct{ file, was, is, reason string }{
		{"replayd.yaml", "\ndrain: ", "\ndrain_after: 1s\ndrain: ", "drain_after"},
		{"records.jsonl", `{"ledger":{"version":1,`, `{"ledger":{"version":2,`, "records.jsonl:1: ledger: version: want at most 1, got 2, of a newer replayd"},
		{"state.json", `{"version":1,`, `{"version":3,`, "version: want 2, got 3"},
	} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			folder := copied(t, latest(t))
			change(t, folder, c.file, c.was, c.is)
			if _, err := readers[c.file](t, folder); err == nil || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("want it refused with %q, got %v", c.reason, err)
			}
		})
	}
}

// A replayd that no longer knew a field would not go unnoticed: for such a replayd the file looks as if the field had another name.
func TestLostFieldsAreFound(t *testing.T) {
	for _, c := range []struct{ file, was, is string }{
		{"replayd.yaml", "min_pairs: ", "least_pairs: "},
		{"records.jsonl", `"ttft_ns":`, `"ttft":`},
		{"records.jsonl", `"dropped":`, `"lost":`},
		{"state.json", `"identity":`, `"digest":`},
		{"state.json", `"back":`, `"returns":`},
		{"state.json", `"up":`, `"rises":`},
		{"state.json", `"epoch":`, `"began":`},
	} {
		t.Run(c.file+" "+c.was, func(t *testing.T) {
			t.Parallel()
			folder := copied(t, latest(t))
			change(t, folder, c.file, c.was, c.is)
			if err := check(t, folder, c.file); err == nil {
				t.Error("want the lost field found")
			} else {
				t.Log(err)
			}
		})
	}
}

// A refusal counts only with its reason, and only if the file is refused.
func TestRefusals(t *testing.T) {
	folder := copied(t, latest(t))
	outside.Write(t, folder, "refused.txt", "replayd.yaml: least_pairs: unknown key\n")
	if err := check(t, folder, "replayd.yaml"); err == nil || err.Error() != "want it refused: least_pairs: unknown key" {
		t.Errorf("want a file that is read found, got %v", err)
	}
	change(t, folder, "replayd.yaml", "min_pairs: ", "least_pairs: ")
	if err := check(t, folder, "replayd.yaml"); err != nil {
		t.Errorf("want it refused with its reason, got %v", err)
	}
	outside.Write(t, folder, "refused.txt", "replayd.yaml: drain: unknown key\n")
	if err := check(t, folder, "replayd.yaml"); err == nil {
		t.Error("want another reason found")
	}
}

// change replaces a text wherever it is in a file.
func change(t *testing.T, folder, file, was, is string) {
	t.Helper()
	path := filepath.Join(folder, file)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), was) {
		t.Fatalf("%s: want %q in it", path, was)
	}
	outside.Write(t, folder, file, strings.ReplaceAll(string(text), was, is))
}
