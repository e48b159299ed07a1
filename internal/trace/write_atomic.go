package trace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace writes a file and renames it to path once it is complete. No reader sees a partial file, and after an error
// the old file is still there. If path exists and is not a regular file (a pipe, a terminal), Replace writes to it
// directly.
func Replace(path string, write func(io.Writer) error) (err error) {
	mode := fs.FileMode(0o666)
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
	case err == nil:
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	part, err := os.OpenFile(fmt.Sprintf("%s.part-%d", path, os.Getpid()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part.Name()))
		}
	}()
	if err := errors.Join(write(part), part.Sync(), part.Close()); err != nil {
		return err
	}
	return os.Rename(part.Name(), path)
}
