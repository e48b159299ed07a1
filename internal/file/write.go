package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Modes of the files and folders that replayd makes: prompts, records and results are for its user and the group, not for everyone on the
// machine. A file that is there keeps its mode.
const (
	Mode       fs.FileMode = 0o640
	FolderMode fs.FileMode = 0o750
)

// MkdirAll makes a folder, and those that it is in.
func MkdirAll(path string) error { return os.MkdirAll(path, FolderMode) }

// Writable makes a folder and checks that files can be made in it.
func Writable(dir string) error {
	if err := MkdirAll(dir); err != nil {
		return err
	}
	probe, err := os.CreateTemp(dir, ".replayd-*")
	if err != nil {
		return err
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// Overwrite opens a file for reading and writing, and makes or empties it. Unlike Create it takes whatever the path is.
func Overwrite(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, Mode)
}

// Append opens a file for writing at its end, and makes it if it is not there. Unlike Create it takes whatever the path is.
func Append(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, Mode)
}

// Replace writes a file and renames it to path once it is complete. No reader sees a partial file, and after an error the old file is still
// there. If path exists and is not a regular file (a pipe, a terminal), Replace writes to it directly.
func Replace(path string, write func(io.Writer) error) error {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s: want a file, got a directory", path)
	case err == nil && !info.Mode().IsRegular():
		out, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(out), out.Close())
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return replace(path, func(f *os.File) error { return errors.Join(write(f), f.Sync()) })
}

// ReplaceLink is Replace for a file that need not outlast a crash of the machine. It takes the place of a symbolic link or a pipe at path.
func ReplaceLink(path string, write func(*os.File) error) error { return replace(path, write) }

// ReplacePrivate is ReplaceLink for a file of its user alone, which outlasts a crash of the machine.
func ReplacePrivate(path string, write func(*os.File) error) error {
	return replace(path, func(f *os.File) error { return errors.Join(f.Chmod(0o600), write(f), f.Sync()) })
}

func replace(path string, write func(*os.File) error) (err error) {
	part, err := createPart(path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part.Name()))
		}
	}()
	if err := errors.Join(write(part), part.Close()); err != nil {
		return err
	}
	return os.Rename(part.Name(), path)
}

// createPart makes a file with another name in the folder of path, which has the mode of the file at path. Its name is
// hidden, and never that of a file which a killed process left: process ids repeat in containers.
func createPart(path string) (*os.File, error) {
	name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%016x.part", filepath.Base(path), rand.Uint64()))
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, Mode)
	if fault := (*fs.PathError)(nil); errors.As(err, &fault) {
		fault.Path = path // the name that the user knows
	}
	if err != nil {
		return nil, err
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		if err := f.Chmod(info.Mode().Perm()); err != nil {
			return nil, errors.Join(err, f.Close(), os.Remove(name))
		}
	}
	return f, nil
}
