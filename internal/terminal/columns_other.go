//go:build !unix

package terminal

import "os"

// isTerminal says whether a file is a terminal, or another device that takes characters.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// columns is the width of a terminal as long as nobody asks this system for it.
func columns(*os.File) int { return 80 }
