package comparison

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/file"
	"replayd/test/machine"
)

const emptyState = `{"version":1,"comparisons":[]}`

// overwrite replaces the text of a file.
func overwrite(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// newStore returns the store of a process of its own.
func newStore(t *testing.T) *Store {
	t.Helper()
	s := NewStore(slog.New(slog.DiscardHandler), nil)
	t.Cleanup(s.Close)
	return s
}

// claimed returns a store that has claimed a state file at once.
func claimed(t *testing.T, path string) *Store {
	t.Helper()
	s := newStore(t)
	c, err := s.Claim(t.Context(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.Use(c)
	return s
}

// One process has the state. Another one waits until it is free, or gives up and says who has it.
func TestStateHasOneOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	link := path + "-link"
	if err := os.Symlink(path, link); err != nil {
		machine.Lacks(t, "symbolic links", err)
	}
	synctest.Test(t, func(t *testing.T) {
		first, other := claimed(t, path), newStore(t)
		begin := time.Now()
		_, err := other.Claim(t.Context(), link, 30*time.Second)
		var held *lockedError
		if took := time.Since(begin); took != 30*time.Second || !errors.As(err, &held) {
			t.Errorf("after %v: %v", took, err)
		}
		host, hostErr := os.Hostname()
		want := "want a file that no other replayd uses, got that of pid " + strconv.Itoa(os.Getpid()) + " on " + host + " since 2000-01-01T00:00:00Z"
		if hostErr != nil || err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want %s, %v", err, want, hostErr)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := other.Claim(ctx, link, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a signal ends the wait: got %v", err)
		}
		time.AfterFunc(10*time.Second, first.Close)
		begin = time.Now()
		c, err := other.Claim(t.Context(), link, 30*time.Second)
		if err != nil || time.Since(begin) > 10*time.Second+claimEvery {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		other.Release(c)
		synctest.Wait()
		if text, err := os.ReadFile(path + lockSuffix); len(text) > 0 || err != nil {
			t.Errorf("nobody has it, and its lock file says %q, %v", text, err)
		}
	})
}

// A write replaces neither a link nor a file that has come since.
func TestStateIsWrittenInPlace(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Symlink("real", "state"); err != nil {
		machine.Lacks(t, "symbolic links", err)
	}
	s := claimed(t, "state")
	for _, before := range []string{"", emptyState, `{"comparisons":[],"version":1}`, `{"version":1,"comparisons":[`} {
		overwrite(t, "real", []byte(before))
		if err := s.current().write(stateFile{Version: stateVersion}); err != nil {
			t.Errorf("over %q: %v", before, err)
		}
	}
	info, err := os.Lstat("real")
	if link, _ := os.Readlink("state"); err != nil || link != "real" || info.Mode().Perm() != 0o600 {
		t.Errorf("the link is %q, the file %v, %v", link, info, err)
	}
	overwrite(t, "real", []byte("mine"))
	if err := s.current().write(stateFile{Version: stateVersion}); err == nil ||
		!strings.Contains(err.Error(), "got another file, which is not replaced") {
		t.Errorf("got %v", err)
	}
	if text, err := os.ReadFile("real"); string(text) != "mine" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
}

// What cannot be read is kept, at most ten times, and then the start is refused.
func TestUnreadableStatesAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	s := newStore(t)
	for n := range maxUnreadable + 1 {
		text := `{"version":` + strconv.Itoa(n+2) + `,"comparisons":0}`
		overwrite(t, path, []byte(text))
		c, err := s.Claim(t.Context(), path, 0)
		name := path + unreadableSuffix
		if n > 0 {
			name += "." + strconv.Itoa(n)
		}
		switch {
		case n == maxUnreadable:
			if err == nil || !strings.Contains(err.Error(), "want fewer than 10 files beside it") {
				t.Errorf("got %v", err)
			}
			name = path
		case err != nil:
			t.Fatal(err)
		default:
			s.Release(c)
		}
		if got, err := os.ReadFile(name); string(got) != text {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

// A lock file that another program wrote is left alone; so is the state, whose writes fail. A folder that is missing
// is none that another process has.
func TestStateWithoutLock(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	overwrite(t, path+lockSuffix, []byte("mine"))
	s := claimed(t, path)
	if err := s.current().write(stateFile{}); err == nil ||
		!strings.Contains(err.Error(), "want a lock file of replayd, or none, got another file") {
		t.Errorf("got %v", err)
	}
	if text, err := os.ReadFile(path + lockSuffix); string(text) != "mine" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
	late := filepath.Join(dir, "folder", "state")
	s = claimed(t, late)
	if err := s.current().write(stateFile{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if err := os.Mkdir(filepath.Dir(late), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.current().write(stateFile{}); err != nil {
		t.Errorf("once the folder is there: %v", err)
	}
	if err := (&stateLock{path: file.Real(late)}).acquire(); err == nil {
		t.Error("want it locked")
	}
}
