package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var testTime = time.Unix(1_700_000_000, 0).UTC()

// newTestRelease is a release of this repository at a made-up version, whose binaries are a line of text each.
func newTestRelease(t *testing.T) *release {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	v, err := parseVersion("v1.2.3-rc.1")
	if err != nil {
		t.Fatal(err)
	}
	r := &release{
		root: root, out: t.TempDir(), work: t.TempDir(), version: v, revision: "0123abc", at: testTime, log: io.Discard, platforms: platforms,
		owner: owner{Module: "replayd", Image: "replayd"},
	}
	if err := os.WriteFile(r.licensesFile(), []byte("licenses\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, p := range platforms {
		for _, with := range []string{"", "-dcgm"} {
			if err := os.Mkdir(filepath.Dir(r.binary(with, p)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(r.binary(with, p), []byte("replayd"+with+" for "+p.String()+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	return r
}

// A stored file is what an archive has of one.
type stored struct {
	header *tar.Header
	text   string
}

func readTar(t *testing.T, r io.Reader) (all []stored) {
	t.Helper()
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, stored{h, string(text)})
	}
}

func unzip(t *testing.T, data []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if !z.ModTime.IsZero() || z.Name != "" {
		t.Errorf("want a gzip header without time and name, got %v, %q", z.ModTime, z.Name)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func readFile(t *testing.T, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// find returns the text of an archive's file.
func find(t *testing.T, all []stored, name string) string {
	t.Helper()
	i := slices.IndexFunc(all, func(s stored) bool { return s.header.Name == name })
	if i < 0 {
		t.Fatalf("want %s in the archive, there is none", name)
	}
	return all[i].text
}

// Each archive has its own binary and the same files, in one folder, of root, at one time. Only those for Linux have a unit.
func TestArchives(t *testing.T) {
	r := newTestRelease(t)
	if err := r.archives(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		with string
		all  []platform
	}{{"", platforms}, {"-dcgm", packaged}} {
		for _, p := range c.all {
			top := "replayd" + c.with + "-1.2.3-rc.1." + p.String()
			all := readTar(t, bytes.NewReader(unzip(t, readFile(t, r.out, top+".tar.gz"))))
			var names []string
			for _, s := range all {
				h := s.header
				want := fs.FileMode(0o644)
				if h.Typeflag == tar.TypeDir || h.Name == top+"/replayd" {
					want = 0o755
				}
				if fs.FileMode(h.Mode) != want || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || !h.ModTime.Equal(testTime) {
					t.Errorf("%s: want mode %o of root at %v, got %o, %d:%d %q, %v", h.Name, want, testTime, h.Mode, h.Uid, h.Gid, h.Uname, h.ModTime)
				}
				if inside, ok := strings.CutPrefix(h.Name, top+"/"); ok && h.Typeflag == tar.TypeReg {
					names = append(names, inside)
				} else if h.Typeflag != tar.TypeDir || !ok {
					t.Errorf("%s: want files under %s", h.Name, top)
				}
			}
			want := []string{"CHANGELOG.md", "LICENSE", "NOTICE", "README.md", licensesFile, "prometheus.yml", "replayd", "replayd.example.yaml", "sample.jsonl"}
			for _, pattern := range []string{"alerts/*.yaml", "dashboards/*.json"} {
				found, err := filepath.Glob(filepath.Join(r.root, pattern))
				if err != nil || len(found) < 5 {
					t.Fatalf("%s: want 5 files or more, got %v, %v", pattern, found, err)
				}
				for _, f := range found {
					want = append(want, filepath.Base(filepath.Dir(f))+"/"+filepath.Base(f))
				}
			}
			if p.os == "linux" {
				want = append(want, "replayd.service")
			}
			slices.Sort(want)
			slices.Sort(names)
			if !slices.Equal(names, want) {
				t.Errorf("%s: want\n%v\ngot\n%v", top, want, names)
			}
			if got, want := find(t, all, top+"/replayd"), "replayd"+c.with+" for "+p.String()+"\n"; got != want {
				t.Errorf("%s: want the binary %q, got %q", top, want, got)
			}
			if got := find(t, all, top+"/replayd.example.yaml"); !strings.Contains(got, "trace: {path: sample.jsonl}") {
				t.Errorf("%s: want the sample beside the configuration, got %s", top, got)
			}
			if got := find(t, all, top+"/prometheus.yml"); !strings.Contains(got, "- alerts/*.yaml") || !strings.Contains(got, "127.0.0.1:9797") {
				t.Errorf("%s: want the rules beside prometheus.yml and replayd on this machine, got %s", top, got)
			}
		}
	}
}

// A file whose words changed is noticed, not shipped half edited.
func TestEditedFiles(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.yaml"), []byte("one two two"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := edited(root, "a.yaml", "one", "1"); err != nil || string(got) != "1 two two" {
		t.Errorf("want one word replaced, got %q, %v", got, err)
	}
	for _, c := range []struct{ word, want string }{{"two", "got it 2 times"}, {"three", "got it 0 times"}} {
		want := `a.yaml: want "` + c.word + `" once, ` + c.want
		if _, err := edited(root, "a.yaml", c.word, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %s, got %v", c.word, want, err)
		}
	}
}
