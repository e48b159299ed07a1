//go:build unix

package terminal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// isTerminal reports whether a file is a terminal. Other devices have no window size.
func isTerminal(f *os.File) bool {
	_, err := windowSize(f)
	return err == nil
}

// columns returns the width of a terminal, or 80 if the terminal does not know its width.
func columns(f *os.File) int {
	size, err := windowSize(f)
	if err != nil || size.Col == 0 {
		return 80
	}
	return int(size.Col)
}

// rows returns the height of a terminal, or 24 if the terminal does not know its height.
func rows(f *os.File) int {
	size, err := windowSize(f)
	if err != nil || size.Row == 0 {
		return 24
	}
	return int(size.Row)
}

// windowSize asks the terminal for its size. File.Fd would make the file blocking, also for other processes that share it.
func windowSize(f *os.File) (size *unix.Winsize, err error) {
	c, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var refused error
	err = c.Control(func(fd uintptr) { size, refused = unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ) })
	return size, errors.Join(err, refused)
}
