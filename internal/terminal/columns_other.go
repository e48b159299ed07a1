//go:build !unix

package terminal

import "os"

// isTerminal says whether a file is a terminal, or another device that takes characters.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// columns is a fixed width, since the width of a terminal is not asked for on this system.
func columns(*os.File) int { return 80 }
