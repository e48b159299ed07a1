package records

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A file is rotated or removed during its compression.
func TestCompressionMeetsRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r")
	part := path + compressed + ".tmp"
	s := newHeardSink()
	s.use(t, Options{Path: path, MaxBytes: 1, Keep: 2, Gzip: true})
	observe := func(n int) {
		t.Helper()
		s.Observe(numbered(n))
		s.flush()
	}
	begin := func() *os.File {
		t.Helper()
		old, _, err := s.oldest()
		if err != nil {
			t.Fatal(err)
		}
		if err := compressTo(t.Context(), part, old); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { old.Close() })
		return old
	}
	finish := func(old *os.File, want ...string) {
		t.Helper()
		if err := s.replace(old, path, part); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, list(t, filepath.Dir(path))); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	observe(1)
	observe(2)
	old := begin()
	observe(3) // record 1 moves from r.1 to r.2
	finish(old, "r", "r.1", "r.2.gz")
	if got := content(t, path+".2.gz"); got != lines(1) {
		t.Errorf("compressed is %s, want record 1", got)
	}
	old = begin()
	observe(4)
	observe(5) // record 2 is removed
	finish(old, "r", "r.1", "r.2")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.compressOne(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("want it to be broken off, got %v", err)
	}
	if diff := cmp.Diff([]string{"r", "r.1", "r.2"}, list(t, filepath.Dir(path))); diff != "" {
		t.Errorf("broken off: -want +got:\n%s", diff)
	}

	old = begin()
	if err := os.Remove(part); err != nil {
		t.Fatal(err)
	}
	if err := s.replace(old, path, part); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("want the compressed file missing, got %v", err)
	}
	if diff := cmp.Diff([]string{"r", "r.1", "r.2"}, list(t, filepath.Dir(path))); diff != "" {
		t.Errorf("a kill before the compressed file is in place loses records: -want +got:\n%s", diff)
	}
}
