package config

import (
	"context"
	"crypto/sha256"
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
	known, _ := file.Digest(path, maxFile+1) // loading the file reports the error
	return &Watcher{path, known}
}

// Run reads the file at the given interval and sends each change to changes, until ctx ends.
func (w *Watcher) Run(ctx context.Context, every time.Duration, changes chan<- struct{}) {
	before := w.known
	tick := time.Tick(every)
	for {
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
		now, err := file.Digest(w.path, maxFile+1)
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
