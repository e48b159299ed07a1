package dataset

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// maxFaults is how many faults are listed; further faults are only counted.
const maxFaults = 20

// faults collects the faults in a dataset's files.
type faults struct {
	first []error
	count int
}

func (f *faults) add(at, field, want, got string) {
	if f.count++; f.count <= maxFaults {
		f.first = append(f.first, fmt.Errorf("%s: %s: want %s, got %s", at, field, want, got))
	}
}

func (f *faults) err() error {
	if f.count > maxFaults {
		return errors.Join(append(f.first, fmt.Errorf("%d errors in all, the first %d are shown", f.count, maxFaults))...)
	}
	return errors.Join(f.first...)
}

const excerptBytes = 40

// excerpt returns the beginning of b in quotes, safe to print.
func excerpt(b []byte) string {
	if len(b) <= excerptBytes {
		return strconv.Quote(string(b))
	}
	cut := excerptBytes
	for cut > excerptBytes-utf8.UTFMax && !utf8.RuneStart(b[cut]) {
		cut--
	}
	return strconv.Quote(string(b[:cut])) + "…"
}
