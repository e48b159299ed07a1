package records

import (
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// content returns the content of a file, uncompressed; "" if it does not exist.
func content(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, compressed) {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(path, err)
		}
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(path, err)
	}
	return string(b)
}

// files returns the contents of the files of records, oldest first, and their names.
func files(t *testing.T, path string) (contents, names []string) {
	t.Helper()
	last := 0
	for kept(path, last+1) {
		last++
	}
	for n := last; n > 0; n-- {
		old := oldRecords(path, n)
		if !exists(old) {
			old += compressed
		}
		contents, names = append(contents, content(t, old)), append(names, strings.TrimPrefix(old, path))
	}
	return append(contents, content(t, path)), append(names, "")
}

// records returns all lines, oldest first. The last one must end with a newline.
func records(t *testing.T, path string) []string {
	t.Helper()
	contents, _ := files(t, path)
	all := strings.SplitAfter(strings.Join(contents, ""), "\n")
	if last := all[len(all)-1]; last != "" {
		t.Fatalf("no newline at the end: %q", last)
	}
	return all[:len(all)-1]
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// openRecords completes the last line; it truncates only a partial record or ledger.
func TestOpenRecordsMends(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	f := func(text, want string) {
		t.Helper()
		write(t, path, text)
		r, err := openRecords(path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		got := content(t, path)
		if got != want || r.size != int64(len(want)) {
			t.Errorf("%.40q…%.40q (%d) and size %d, want %.40q (%d)", got, got[max(len(got)-40, 0):], len(got), r.size, want, len(want))
		}
	}
	long := strings.Repeat("x", 64<<10)
	f("", "")
	f("\n", "\n")
	f("a\nb\n", "a\nb\n")
	f(`{`, "")
	f(`{"id"`, "")
	f(`{"id":"w/0`, "")
	f("a\n"+`{"ledger":{"time_ns":1`, "a\n")
	f("a\n"+`{"led`, "a\n")
	f("a\n"+`{"ledge"`, "a\n"+`{"ledge"`+"\n")
	f("a\n"+`{"id":"w/0`, "a\n")
	f("a\n"+`{"id":"`+long, "a\n")
	f("a\n"+`{"id":"`+long+long, "a\n")
	f("a\n"+`{"id":`+long[6:], "a\n")
	f(`{"id":`+long[6:], "")
	f("a\n"+`{"i"`, "a\n"+`{"i"`+"\n")
	f("a\n"+`{"ID":1`, "a\n"+`{"ID":1`+"\n")
	f("a\nb", "a\nb\n")
	f("a", "a\n")
	f("a\n"+long, "a\n"+long+"\n")
	// Longer than any record, so another program wrote it.
	f(strings.Repeat(`{"id":`, 1<<20), strings.Repeat(`{"id":`, 1<<20)+"\n")
}

// A path that is no regular file is only appended to: no truncation, rotation or compression.
func TestSinkWritesThroughALink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path, target := filepath.Join(dir, "link"), filepath.Join(dir, "real")
		write(t, target, `{"id":"theirs`+"\n"+`{"id":`)
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		s := newHeardSink()
		s.use(t, Options{Path: path, MaxBytes: 1, Keep: 1, Gzip: true})
		stop := running(t, s.Sink)
		s.Observe(numbered(1))
		pass(time.Second)
		s.Observe(numbered(2))
		if err := stop(); err != nil {
			t.Error(err)
		}
		isFile(t, target, `{"id":"theirs`+"\n"+`{"id":`+lines(1, 2))
		if names := list(t, dir); len(names) != 2 {
			t.Errorf("want the link and its file, got %q", names)
		}
		s.heard(t, 0, "")
	})
}

// list returns the names in a directory.
func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
