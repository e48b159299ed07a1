//go:build real

package image_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"replayd/test/outside"
)

// The image has exactly these files, and the folders to write to are the user's own.
func TestContents(t *testing.T) {
	outside.NeedRoot(t)
	root := t.TempDir()
	assemble(t, root)
	want := map[string]string{
		"etc/group":                     "-rw-r--r-- 0:0",
		"etc/passwd":                    "-rw-r--r-- 0:0",
		certificates[1:]:                "-rw-r--r-- 0:0",
		"tmp/":                          "dtrwxrwxrwx 0:0",
		"usr/bin/replayd":               "-rwxr-xr-x 0:0",
		"usr/share/doc/replayd/LICENSE": "-rw-r--r-- 0:0",
		"usr/share/doc/replayd/NOTICE":  "-rw-r--r-- 0:0",
		"var/lib/replayd/":              "drwxr-x--- " + nobody,
	}
	got := map[string]string{}
	for path, f := range tree(t, root) {
		if f.leaf {
			got[path] = f.rights
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("want\n%v\ngot\n%v", want, got)
	}
	for file, want := range map[string]string{"etc/passwd": ":65532:65532:", "etc/group": ":65532:"} {
		if text, err := os.ReadFile(filepath.Join(root, file)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("want %s with %s, got %q, %v", file, want, text, err)
		}
	}
}

type file struct {
	rights string
	leaf   bool // a file, or an empty folder
	size   int64
	time   time.Time
}

// tree lists the content of a folder.
func tree(t *testing.T, root string) map[string]file {
	t.Helper()
	all := map[string]file{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, f := strings.TrimPrefix(p, root+"/"), file{leaf: true, size: info.Size(), time: info.ModTime()}
		if d.IsDir() {
			entries, err := os.ReadDir(p)
			if err != nil {
				return err
			}
			name, f.leaf = name+"/", len(entries) == 0
		}
		s := info.Sys().(*syscall.Stat_t)
		f.rights = fmt.Sprintf("%v %d:%d", info.Mode(), s.Uid, s.Gid)
		all[name] = f
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
