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

// maxFaults is how many faults are listed; further faults are only counted.
const maxFaults = 20

// faults collects the faults of a file. It keeps the first maxFaults and counts all.
type faults struct {
	name  string
	first []string
	count int
}

// add adds a fault of a line. Line 0 is the whole file.
func (f *faults) add(line int, what fault) {
	if f.count++; f.count > maxFaults {
		return
	}
	at := f.name
	if line > 0 {
		at = fmt.Sprintf("%s:%d", f.name, line)
	}
	f.first = append(f.first, fmt.Sprintf("%s: %s", at, what))
}

// list returns the first faults and, if there are more, a line with the total.
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
