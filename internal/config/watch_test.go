package config

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A Kubernetes mount: the file is a link into a folder that is itself a link, and only the folder's link is swapped.
func TestWatchSeesASwappedLink(t *testing.T) {
	dir := t.TempDir()
	version := func(name, text string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "replayd.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		next := filepath.Join(dir, "..data_tmp")
		if err := os.Symlink(name, next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	version("..v1", "drain: 1s")
	path := filepath.Join(dir, "replayd.yaml")
	if err := os.Symlink("..data/replayd.yaml", path); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		changes := make(chan struct{})
		var seen []time.Duration
		begin := time.Now()
		w := NewWatcher(path)
		version("..v2", "drain: 2s") // changed before the first read: seen at 5 s, confirmed at 10 s
		ended, read := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			w.Run(ctx, 5*time.Second, changes)
		}()
		go func() {
			defer close(read)
			for {
				select {
				case <-changes:
					seen = append(seen, time.Since(begin))
				case <-ended:
					return
				}
			}
		}()
		<-time.After(11 * time.Second)
		version("..v3", "drain: 3s") // seen at 15 s, confirmed at 20 s
		<-time.After(10 * time.Second)
		version("..v4", "drain: 3s") // the same content is no change
		<-time.After(20 * time.Second)
		if err := os.Remove(path); err != nil { // a missing file is no change
			t.Fatal(err)
		}
		<-time.After(20 * time.Second)
		if err := os.WriteFile(path, []byte("drain: 4s"), 0o600); err != nil { // seen at 65 s, confirmed at 70 s
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		stop()
		<-read
		if want := []time.Duration{10 * time.Second, 20 * time.Second, 70 * time.Second}; !slices.Equal(seen, want) {
			t.Errorf("want changes at %v, got %v", want, seen)
		}
	})
}
