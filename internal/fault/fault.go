// Package fault has the errors of options and files as data: the place, the key, and the value wanted and found. Their
// text is made once, at the end, so no code reads it back.
package fault

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"replayd/internal/spelling"
)

// A Fault is one thing that is wrong.
type Fault struct {
	Place string // where it stands, such as FILE:LINE; "": not known
	Key   string // such as repeat.every or stages[0].rate; "": the whole
	Want  string // such as: want 0 to 1, got 2
	cause error  // that Want is the text of; nil: none
}

// Unwrap returns the error from which the fault was made.
func (f Fault) Unwrap() error { return f.cause }

func (f Fault) Error() string {
	text := f.Want
	for _, before := range []string{f.Key, f.Place} {
		if before != "" {
			text = before + ": " + text
		}
	}
	return strings.ReplaceAll(text, "\n", `\n`) // a fault is one line
}

// A List has all faults that were found. As an error it has a line for each.
type List []Fault

func (l List) Error() string { return l.text("\n") }

func (l List) text(between string) string {
	all := make([]string, len(l))
	for i, f := range l {
		all[i] = f.Error()
	}
	return strings.Join(all, between)
}

// Unwrap returns the faults as errors.
func (l List) Unwrap() []error {
	errs := make([]error, len(l))
	for i := range l {
		errs[i] = l[i]
	}
	return errs
}

// Err returns the list as an error, and nil if it is empty.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	return l
}

// Line returns the faults in one line, as part of another fault; "" if there are none.
func (l List) Line() string { return l.text("; ") }

// Under returns the faults with their keys below another one: http.proxy_url under targets[0] is targets[0].http.proxy_url.
func (l List) Under(key string) List {
	return l.Named(func(below string) string { return Join(key, below) })
}

// Named returns the faults with other names for their keys, such as flags.
func (l List) Named(name func(key string) string) List {
	named := slices.Clone(l)
	for i := range named {
		named[i].Key = name(named[i].Key)
	}
	return named
}

// Join returns the key below another one. Either may be empty.
func Join(key, below string) string {
	if key == "" || below == "" {
		return key + below
	}
	return key + "." + below
}

// Of returns the faults in an error, and in each error that it joins. An error that has none is one fault without a key.
// A List is complete by itself, so texts of errors around it are left out. nil has no faults.
func Of(err error) List {
	if err == nil {
		return nil
	}
	if l := within(err); l != nil {
		return l
	}
	return List{{Want: err.Error(), cause: err}}
}

// within returns the faults in an error; nil: it has none, and its text is all there is.
func within(err error) (all List) {
	switch e := err.(type) { //nolint:errorlint // it looks at each error of the chain by itself
	case List:
		return e
	case Fault:
		return List{e}
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			all = append(all, Of(one)...)
		}
		return all
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return known(within(inner))
		}
	}
	return nil
}

// At returns the faults in an error below a key.
func At(key string, err error) List { return Of(err).Under(key) }

// known returns a list only if one of its faults has a key: the text around others is a part of them.
func known(l List) List {
	if slices.ContainsFunc(l, func(f Fault) bool { return f.Key != "" || f.Place != "" }) {
		return l
	}
	return nil
}

// Add adds a fault of a key.
func (l *List) Add(key, format string, args ...any) {
	*l = append(*l, Fault{Key: key, Want: fmt.Sprintf(format, args...)})
}

// If adds a fault where something is wrong.
func (l *List) If(wrong bool, key, format string, args ...any) {
	if wrong {
		l.Add(key, format, args...)
	}
}

// OneOf wants one of several words.
func (l *List) OneOf(key, got string, want ...string) {
	if !slices.Contains(want, got) {
		l.Add(key, "%s", spelling.Want(want, got))
	}
}

// NotNegative wants a duration of 0 or more.
func (l *List) NotNegative(key string, got time.Duration) {
	l.If(got < 0, key, "want a duration ≥ 0, got %v", got)
}

// AtLeast wants an integer of at least so much.
func (l *List) AtLeast(key string, got, least int) {
	l.If(got < least, key, "want an integer ≥ %d, got %d", least, got)
}

// Integer wants an integer within bounds.
func (l *List) Integer(key string, got, low, high int) {
	l.If(got < low || got > high, key, "want an integer from %d to %d, got %d", low, high, got)
}

// Share wants a share, 0 to 1. NaN is none.
func (l *List) Share(key string, got float64) {
	l.If(!(got >= 0 && got <= 1), key, "want 0 to 1, got %v", got)
}

// Between wants a number within bounds. NaN is never one.
func (l *List) Between(key string, got, low, high float64) {
	l.If(!(got >= low && got <= high), key, "want a number from %v to %v, got %v", low, high, got)
}
