// Package file opens files that others name. No open waits: a pipe without a writer would hold it for as long as it has none. No device is opened,
// because an open can act on it, and a read of it may have no end.
package file

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Open opens a regular file for reading.
func Open(path string) (*os.File, error) { return open(path, os.O_RDONLY, 0, false) }

// OpenSoon is Open, and takes a pipe as well. A pipe that nobody writes to is empty.
func OpenSoon(path string) (*os.File, error) { return open(path, os.O_RDONLY, 0, true) }

// Create opens a regular file for reading and writing, and makes it if it is not there.
func Create(path string, mode fs.FileMode) (*os.File, error) {
	return open(path, os.O_RDWR|os.O_CREATE, mode, false)
}

func open(path string, flag int, mode fs.FileMode, pipe bool) (*os.File, error) {
	if err := Check(path, pipe); err != nil { // first, because an open can act on a device
		return nil, err
	}
	f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, mode) // the path may be a pipe by now
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = want(path, info.Mode(), pipe)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Digest returns the SHA-256 of a regular file, of so many bytes at most.
func Digest(path string, most int64) (sum [sha256.Size]byte, err error) {
	f, err := Open(path)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	digest := sha256.New()
	_, err = io.Copy(digest, io.LimitReader(f, most))
	return [sha256.Size]byte(digest.Sum(nil)), err
}

// Read returns the content of a regular file of at most so many bytes.
func Read(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s: want at most %d bytes, got more", path, most)
	}
	return text, nil
}

// Check returns an error if path is neither a regular file nor, where pipe is true, a pipe. It returns nil if os.Stat fails, because opening the path
// fails too.
func Check(path string, pipe bool) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil //nolint:nilerr // opening it gives the same error
	}
	return want(path, info.Mode(), pipe)
}

func want(path string, mode fs.FileMode, pipe bool) error {
	kind := "something else"
	switch {
	case mode.IsRegular(), pipe && mode&fs.ModeNamedPipe != 0:
		return nil
	case mode.IsDir():
		kind = "a directory"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a pipe"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	}
	return fmt.Errorf("%s: want a file, got %s", path, kind)
}

// OpenPipe is Open, and where pipe is true takes a pipe as well. It waits for the pipe's writer until ctx ends: it then opens the pipe for writing
// itself.
func OpenPipe(ctx context.Context, path string, pipe bool) (*os.File, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if info, err := os.Stat(path); !pipe || err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return Open(path)
	}
	opened := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		if w, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
			<-opened
			_ = w.Close() // nothing was written
		}
	})
	defer stop()
	defer close(opened)
	return os.Open(path)
}

// Until makes the end of ctx end a read of a silent pipe, until stop is called.
func Until(ctx context.Context, in io.Reader) (stop func() bool) {
	timed, ok := in.(interface{ SetReadDeadline(t time.Time) error })
	if !ok {
		return func() bool { return true }
	}
	return context.AfterFunc(ctx, func() { _ = timed.SetReadDeadline(time.Unix(1, 0)) })
}

// Real returns the absolute path of a file behind symbolic links; the file need not be there.
func Real(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	for range maxLinks {
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return path
}

// maxLinks is how many symbolic links Linux follows.
const maxLinks = 40
