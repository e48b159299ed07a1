package export

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/result"
)

// tree returns the content of every file under a directory.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Files of an earlier run move away, also if two runs begin in the same second. Other files stay.
func TestOpenArtifacts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "artifacts")
	now := time.Date(2026, 1, 2, 4, 4, 5, 0, time.FixedZone("", 3600))
	open := func(moved string) Artifacts {
		t.Helper()
		a, err := OpenArtifacts(dir, now)
		if err != nil {
			t.Fatal(err)
		}
		if want := filepath.Join(dir, "before", moved); moved == "" && a.Moved != "" || moved != "" && a.Moved != want {
			t.Errorf("moved to %q, want %q", a.Moved, moved)
		}
		return a
	}
	put := func(names ...string) {
		t.Helper()
		for _, name := range names {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(name), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if a := open(""); len(tree(t, dir)) != 0 || a.Path(CSVName) != filepath.Join(dir, CSVName) {
		t.Errorf("%v", tree(t, dir))
	}
	foreign := []string{"notes.txt", "profile_export.jsonl.bak", "mine/profile_export.jsonl", "logs/other.log", "before/profile_export.jsonl"}
	put(foreign...)
	open("")
	put(result.ExportName, CSVName, "logs/aiperf.log")
	open("20260102T030405Z")
	put(result.ExportName)
	open("20260102T030405Z-2")
	want := map[string]string{
		"before/20260102T030405Z/profile_export.jsonl":      result.ExportName,
		"before/20260102T030405Z/profile_export_aiperf.csv": CSVName,
		"before/20260102T030405Z/logs/aiperf.log":           "logs/aiperf.log",
		"before/20260102T030405Z-2/profile_export.jsonl":    result.ExportName,
	}
	for _, name := range foreign {
		want[name] = name
	}
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// A directory with the name of one of replayd's files is not replayd's.
	if err := os.Mkdir(filepath.Join(dir, result.JSONName), 0o755); err != nil {
		t.Fatal(err)
	}
	open("")
}

// A directory that is not writable is an error before any request is sent.
func TestOpenArtifactsNotWritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		if _, err := OpenArtifacts(dir, time.Now()); err == nil || !strings.HasPrefix(err.Error(), "artifact directory: ") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	closed := t.TempDir()
	if err := os.Chmod(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenArtifacts(closed, time.Now()); os.Getuid() != 0 && !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v", err)
	}
}

func TestArtifactsWrite(t *testing.T) {
	dir := t.TempDir()
	a := Artifacts{Dir: dir}
	text := func(s string, err error) func(*os.File) error {
		return func(f *os.File) error {
			_, wrote := f.WriteString(s)
			return errors.Join(wrote, err)
		}
	}
	if err := a.Write(CSVName, text("whole", nil)); err != nil {
		t.Fatal(err)
	}
	if err := a.Write(CSVName, text("half", errFull)); !errors.Is(err, errFull) || !strings.HasPrefix(err.Error(), CSVName+": ") {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff(map[string]string{CSVName: "whole"}, tree(t, dir)); diff != "" {
		t.Errorf("what could not be written changes nothing and leaves nothing:\n%s", diff)
	}
}

func TestOurFilesAreListedOnce(t *testing.T) {
	sorted := slices.Sorted(slices.Values(ours))
	if len(slices.Compact(sorted)) != len(ours) {
		t.Errorf("%q", ours)
	}
}
