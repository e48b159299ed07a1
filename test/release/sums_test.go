//go:build real && release

package release_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"replayd/test/outside"
)

const sums = "sha256sums.txt"

// Every file of the release has its checksum, and `sha256sum --check` takes the list.
func TestChecksums(t *testing.T) {
	c := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "--quiet", sums)
	c.Dir = dist
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("sha256sum --check: %v\n%s", err, said)
	}
	entries, err := os.ReadDir(dist)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, e := range entries {
		if e.Name() != sums {
			want = append(want, e.Name())
		}
	}
	got := slices.Sorted(maps.Keys(listed(t)))
	if !slices.Equal(got, want) {
		t.Errorf("%s: want\n%v\ngot\n%v", sums, want, got)
	}
}

// listed returns the checksums of the list by name.
func listed(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(read(t, at(sums))) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			t.Fatalf("%s: want SUM  NAME, got %q", sums, line)
		}
		all[name] = sum
	}
	return all
}

// The statement names every file that a user installs, by its checksum, the commit and the Go that it was built with.
func TestStatement(t *testing.T) {
	name := "replayd-" + version + ".intoto.json"
	var statement struct {
		Type          string `json:"_type"`
		PredicateType string `json:"predicateType"`
		Subject       []struct {
			Name   string
			Digest struct{ SHA256 string }
		}
		Predicate struct {
			BuildDefinition struct {
				BuildType            string
				ResolvedDependencies []struct {
					URI    string
					Digest struct{ GitCommit string }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(read(t, at(name))), &statement); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if statement.Type != "https://in-toto.io/Statement/v1" || statement.PredicateType != "https://slsa.dev/provenance/v1" {
		t.Errorf("want a statement of in-toto v1 with provenance of SLSA v1, got %s with %s", statement.Type, statement.PredicateType)
	}
	want := listed(t)
	delete(want, name) // it cannot state itself
	got := map[string]string{}
	for _, s := range statement.Subject {
		got[s.Name] = s.Digest.SHA256
	}
	if !maps.Equal(want, got) {
		t.Errorf("want the files of %s, got %v", sums, got)
	}
	commit, err := exec.CommandContext(t.Context(), "git", "-C", repository, "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	dependencies := statement.Predicate.BuildDefinition.ResolvedDependencies
	if len(dependencies) == 0 || dependencies[0].Digest.GitCommit != strings.TrimSpace(string(commit)) {
		t.Errorf("want commit %s, got %v", commit, dependencies)
	}
}

// The bill of materials of each archive lists every module of its binary, with its version.
func TestBillsOfMaterials(t *testing.T) {
	archives, err := filepath.Glob(at("replayd-" + version + ".*.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, archive := range archives {
		bill := strings.TrimSuffix(archive, ".tar.gz") + ".cdx.json"
		binary := filepath.Join(unpack(t, archive), "replayd")
		if _, err := os.Stat(binary); errors.Is(err, fs.ErrNotExist) {
			continue // the mixin
		}
		outside.HoldBill(t, binary, bill)
		n++
	}
	if n < 2 {
		t.Errorf("want an archive for each platform, got %d", n)
	}
}

// unpack unpacks an archive and returns its only folder.
func unpack(t *testing.T, archive string) string {
	t.Helper()
	dir := t.TempDir()
	if said, err := exec.CommandContext(t.Context(), "tar", "-xzf", archive, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", archive, err, said)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimSuffix(filepath.Base(archive), ".tar.gz")
	if len(entries) != 1 || entries[0].Name() != want {
		t.Fatalf("%s: want one folder %s, got %v", archive, want, entries)
	}
	return filepath.Join(dir, want)
}

// sum returns the SHA-256 of a file.
func sum(t *testing.T, path string) string {
	t.Helper()
	h := sha256.Sum256([]byte(read(t, path)))
	return hex.EncodeToString(h[:])
}
