//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package comparison

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

var errLocked = error(unix.EWOULDBLOCK)

// tryLock locks a file. Where the file system has no locks, the file counts as locked.
func tryLock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	for _, lacks := range []error{unix.ENOTSUP, unix.EOPNOTSUPP, unix.ENOSYS, unix.ENOLCK} {
		if errors.Is(err, lacks) {
			return nil
		}
	}
	return err
}
