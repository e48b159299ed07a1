package fault

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// maxShown is how many faults of a file are shown; further ones are only counted.
const maxShown = 20

// A Tally has the first faults of a file with rows, and counts all.
type Tally struct {
	Count int
	first []string
}

// New returns the fault of a key that has another value than is wanted.
func New(key, want, got string) Fault { return Fault{Key: key, Want: "want " + want + ", got " + got} }

// Add adds a fault.
func (t *Tally) Add(f Fault) {
	if t.Count++; t.Count <= maxShown {
		t.first = append(t.first, f.Error())
	}
}

// Texts returns the first faults and, if there are more, a line with the total that begins with before.
func (t *Tally) Texts(before, noun string) []string {
	if t.Count <= maxShown {
		return t.first
	}
	total := fmt.Sprintf("%s%d %s in all, the first %d are shown", before, t.Count, noun, maxShown)
	return append(t.first[:maxShown:maxShown], total)
}

// Err returns the texts as an error, a line each; nil if there are none. A fault's key and place are of the file, so
// they are part of the text for whoever names the file.
func (t *Tally) Err(before string) error {
	var errs []error
	for _, text := range t.Texts(before, "errors") {
		errs = append(errs, errors.New(text))
	}
	return errors.Join(errs...)
}

// ExcerptBytes is the most bytes that Excerpt shows.
const ExcerptBytes = 40

// Excerpt returns the beginning of b in quotes, safe to print.
func Excerpt(b []byte) string {
	if len(b) <= ExcerptBytes {
		return strconv.Quote(string(b))
	}
	cut := ExcerptBytes
	for cut > ExcerptBytes-utf8.UTFMax && !utf8.RuneStart(b[cut]) {
		cut--
	}
	return strconv.Quote(string(b[:cut])) + "…"
}
