//go:build unix

package file

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func said(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

func has(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != text || info.Mode().Perm() != mode {
		t.Errorf("%s: want %q with mode %o, got %q with %o", filepath.Base(path), text, mode, got, info.Mode().Perm())
	}
}

// What is written is for the user and the group alone, less where the umask says so. A file that is there keeps its mode.
func TestModes(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	write := map[string]func(path, text string) error{
		"Overwrite": func(path, text string) error {
			f, err := Overwrite(path)
			if err != nil {
				return err
			}
			return errors.Join(said(text)(f), f.Close())
		},
		"Append": func(path, text string) error {
			if err := os.Truncate(path, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			f, err := Append(path)
			if err != nil {
				return err
			}
			return errors.Join(said(text)(f), f.Close())
		},
		"Replace": func(path, text string) error { return Replace(path, said(text)) },
		"ReplaceLink": func(path, text string) error {
			return ReplaceLink(path, func(f *os.File) error { return said(text)(f) })
		},
	}
	for name, write := range write {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			if err := write(path, "new"); err != nil {
				t.Fatal(err)
			}
			has(t, path, "new", 0o640)
			for _, mode := range []fs.FileMode{0o600, 0o664} {
				if err := os.Chmod(path, mode); err != nil {
					t.Fatal(err)
				}
				if err := write(path, "again"); err != nil {
					t.Fatal(err)
				}
				has(t, path, "again", mode)
			}
			syscall.Umask(0o077)
			private := filepath.Join(filepath.Dir(path), "private")
			if err := write(private, "new"); err != nil {
				t.Fatal(err)
			}
			syscall.Umask(0)
			has(t, private, "new", 0o600)
		})
	}
	private := filepath.Join(t.TempDir(), "f")
	for _, text := range []string{"new", "again"} {
		if err := ReplacePrivate(private, func(f *os.File) error { return said(text)(f) }); err != nil {
			t.Fatal(err)
		}
		has(t, private, text, 0o600)
		if err := os.Chmod(private, 0o664); err != nil {
			t.Fatal(err)
		}
	}
	folder := filepath.Join(t.TempDir(), "a", "b")
	if err := MkdirAll(folder); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{folder, filepath.Dir(folder)} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o750 {
			t.Errorf("want a folder with mode 0750, got %v, %v", info, err)
		}
	}
}

// A write that fails leaves the old file and no other. A link leads to what Replace writes, and ReplaceLink takes its place.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	fault := errors.New("full")
	for name, replace := range map[string]func(path string) error{
		"Replace": func(path string) error {
			return Replace(path, func(w io.Writer) error { return errors.Join(said("x")(w), fault) })
		},
		"ReplaceLink":    func(path string) error { return ReplaceLink(path, func(*os.File) error { return fault }) },
		"ReplacePrivate": func(path string) error { return ReplacePrivate(path, func(*os.File) error { return fault }) },
	} {
		if err := Replace("f", said("old")); err != nil {
			t.Fatal(err)
		}
		if err := replace("f"); !errors.Is(err, fault) {
			t.Errorf("%s: got %v", name, err)
		}
		has(t, "f", "old", 0o640)
		if list, err := os.ReadDir("."); err != nil || len(list) != 1 {
			t.Errorf("%s: want no other file, got %v, %v", name, list, err)
		}
	}
	if err := os.Symlink("f", "link"); err != nil {
		t.Fatal(err)
	}
	if err := Replace("link", said("by the link")); err != nil {
		t.Fatal(err)
	}
	has(t, "f", "by the link", 0o640)
	if err := ReplaceLink("link", func(f *os.File) error { return said("in its place")(f) }); err != nil {
		t.Fatal(err)
	}
	has(t, "f", "by the link", 0o640)
	has(t, "link", "in its place", 0o640)
	if err := Replace(dir, said("x")); err == nil {
		t.Error("want a directory refused")
	}
	if err := Replace("/dev/null", said("x")); err != nil {
		t.Errorf("want a device written to, got %v", err)
	}
	if info, err := os.Stat("/dev/null"); err != nil || info.Mode().IsRegular() {
		t.Errorf("want the device still there, got %v, %v", info, err)
	}
}
