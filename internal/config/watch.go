package config

import (
	"context"
	"crypto/sha256"
	"io"
	"time"

	"replayd/internal/file"
)

// A Watcher detects changes of a file by the hash of its content. inotify on the file misses two cases: Kubernetes
// swaps a symbolic link two directories up, and editors replace the file. A change counts once two reads in a row see
// the same content, so a missing or half-written file is no change.
type Watcher struct {
	path  string
	known [sha256.Size]byte
}

// NewWatcher records the current content. Call it before the file is loaded, so that no change in between is missed.
func NewWatcher(path string) *Watcher {
	known, _ := hash(path) // loading the file reports the error
	return &Watcher{path, known}
}

// Run reads the file at the given interval and sends each change to changes, until ctx ends.
func (w *Watcher) Run(ctx context.Context, every time.Duration, changes chan<- struct{}) {
	before := w.known
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now, err := hash(w.path)
		settled := err == nil && now == before
		if err == nil {
			before = now
		}
		if !settled || now == w.known {
			continue
		}
		select {
		case changes <- struct{}{}:
			w.known = now
		case <-ctx.Done():
			return
		}
	}
}

// hash returns the hash of a file's content, up to the maximum size of a configuration.
func hash(path string) (sum [sha256.Size]byte, err error) {
	f, err := file.Open(path)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, maxFile+1)); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}
