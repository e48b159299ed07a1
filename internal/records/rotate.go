package records

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
)

const compressed = ".gz"

// oldRecords returns the path of the nth rotated file.
func oldRecords(path string, n int) string {
	return path + "." + strconv.Itoa(n)
}

// kept reports whether the nth rotated file exists, compressed or not.
func kept(path string, n int) bool {
	old := oldRecords(path, n)
	return exists(old) || exists(old+compressed)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// shift renames the newest file to number 1 and each rotated file to the next number, and removes those beyond keep. A
// crash between two steps leaves a gap in the numbers, which the next shift fills; the order is preserved.
func shift(path string, keep int) error {
	for n := keep + 1; kept(path, n); n++ { // keep may have been larger before
		if err := discard(path, n); err != nil {
			return err
		}
	}
	if keep == 0 {
		return os.Remove(path)
	}
	free := 1
	for free < keep && kept(path, free) {
		free++
	}
	if err := discard(path, free); err != nil {
		return err
	}
	for n := free - 1; n > 0; n-- {
		for _, suffix := range []string{"", compressed} {
			err := os.Rename(oldRecords(path, n)+suffix, oldRecords(path, n+1)+suffix)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return os.Rename(path, oldRecords(path, 1))
}

func discard(path string, n int) error {
	for _, suffix := range []string{"", compressed} {
		if err := os.Remove(oldRecords(path, n) + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
