package dataset

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// maxFaults is how many are told; the others are counted.
const maxFaults = 20

// faults are what was found wrong in a set's files.
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

// excerpt shows the beginning of what stands in a file, safe to print.
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
