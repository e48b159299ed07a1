//go:build unix

package report

import (
	"os"

	"golang.org/x/sys/unix"
)

// isTerminal says whether a file is a terminal: another device has no window.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// columns is the width of a terminal; a terminal that does not know its own has 80.
func columns(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return 80
	}
	return int(size.Col)
}
