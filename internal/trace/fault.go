package trace

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// A fault is one thing wrong in one row.
type fault struct{ field, want, got string }

func (f fault) String() string { return f.field + ": want " + f.want + ", got " + f.got }

// maxFaults is how many are told; the others are counted.
const maxFaults = 20

// faults are what was found wrong in a file, bounded.
type faults struct {
	name  string
	first []string
	count int
}

func (f *faults) add(line int, what fault) {
	if f.count++; f.count <= maxFaults {
		f.first = append(f.first, fmt.Sprintf("%s:%d: %s", f.name, line, what))
	}
}

// list returns the first ones and, when there are more, how many there are in all.
func (f *faults) list(noun string) []string {
	if f.count <= maxFaults {
		return f.first
	}
	return append(f.first[:maxFaults:maxFaults], fmt.Sprintf("%s: %d %s in all, the first %d are shown", f.name, f.count, noun, maxFaults))
}

func (f *faults) err() error {
	var errs []error
	for _, s := range f.list("errors") {
		errs = append(errs, errors.New(s))
	}
	return errors.Join(errs...)
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
