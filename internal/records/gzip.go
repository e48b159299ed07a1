package records

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip" // takes half the time of the standard library, and the measurement needs the CPU

	"replayd/internal/file"
)

// compress compresses rotated files, including those of earlier processes, until ctx is cancelled. A file that cannot
// be compressed stays uncompressed until the next rotation.
func (s *Sink) compress(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.rotated:
		}
		for more := true; more && ctx.Err() == nil; {
			var err error
			if more, err = s.compressOne(ctx); err != nil && ctx.Err() == nil {
				s.failure.log.Warn("a rotated file of records cannot be compressed yet", "err", fmt.Errorf("records: %w", err))
			}
		}
	}
}

// compressOne compresses the oldest uncompressed file and reports whether there may be another one. It repeats a
// compression that a crash has interrupted.
func (s *Sink) compressOne(ctx context.Context) (more bool, err error) {
	old, path, err := s.oldest()
	if path == "" || err != nil {
		return false, err
	}
	part := path + compressed + ".tmp"
	if old == nil {
		_ = os.Remove(part) // a crash may have left it; usually it does not exist
		return false, nil
	}
	defer old.Close()
	if err = compressTo(ctx, part, old); err == nil {
		err = s.replace(old, path, part)
	}
	if err != nil {
		_ = os.Remove(part) // the next compression overwrites it anyway
	}
	return err == nil, err
}

// oldest opens the oldest file to compress. old is nil if there is none.
func (s *Sink) oldest() (old *os.File, path string, err error) {
	s.disk.Lock()
	defer s.disk.Unlock()
	path = s.options.Path
	if path == "" || !s.options.Gzip || s.options.MaxBytes <= 0 {
		return nil, path, nil
	}
	last := ""
	for n := 1; kept(path, n); n++ {
		if info, err := os.Lstat(oldRecords(path, n)); err == nil && info.Mode().IsRegular() {
			last = oldRecords(path, n)
		}
	}
	if last == "" {
		return nil, path, nil
	}
	old, err = file.Open(last)
	return old, path, err
}

// compressTo compresses old to part until ctx is cancelled.
func compressTo(ctx context.Context, part string, old *os.File) (err error) {
	info, err := old.Stat()
	if err != nil {
		return err
	}
	to, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, info.Mode().Perm())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	z, err := gzip.NewWriterLevel(to, gzip.BestSpeed) // leaves more CPU time to the replay
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if _, err := io.CopyN(z, old, 1<<20); errors.Is(err, io.EOF) {
			return z.Close()
		} else if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// replace renames part to the compressed name of old, which may have been rotated or removed meanwhile, and removes
// old.
func (s *Sink) replace(old *os.File, path, part string) error {
	s.disk.Lock()
	defer s.disk.Unlock()
	info, err := old.Stat()
	if err != nil {
		return err
	}
	for n := 1; kept(path, n); n++ {
		name := oldRecords(path, n)
		if there, err := os.Lstat(name); err != nil || !os.SameFile(there, info) {
			continue
		}
		if err := os.Rename(part, name+compressed); err != nil {
			return err
		}
		return os.Remove(name)
	}
	return os.Remove(part)
}
