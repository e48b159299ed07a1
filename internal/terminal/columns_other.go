//go:build !unix

package terminal

import "os"

// isTerminal reports whether a file is a terminal or another character device.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// columns returns a fixed width: on this system the terminal is not asked.
func columns(*os.File) int { return 80 }

// rows returns a fixed height.
func rows(*os.File) int { return 24 }
