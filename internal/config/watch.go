package config

import (
	"context"
	"crypto/sha256"
	"io"
	"os"
	"time"
)

// A Watcher knows the content of a file, by its hash: Kubernetes swaps a symbolic link two folders up, editors put a new
// file in the place of the old one, and a watch on the file itself sees neither. A file that is not there, or is half
// written, is no change yet: what it holds at two looks in a row is.
type Watcher struct {
	path  string
	known [sha256.Size]byte
}

// NewWatcher takes the content as it is now: call it before the file is loaded, or what changes in between goes unseen.
func NewWatcher(path string) *Watcher {
	known, _ := hash(path) // loading it says what is wrong
	return &Watcher{path, known}
}

// Run looks every so often and reports each change on changes, until ctx ends.
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

// hash is that of a file's content; no configuration is longer than the bound.
func hash(path string) (sum [sha256.Size]byte, err error) {
	f, err := os.Open(path)
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
