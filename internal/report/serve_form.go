package report

import (
	"net/url"

	"replayd/internal/measure"
)

// A form is what the dashboard lets its reader choose, as it was sent.
type form struct {
	Runs     []choice
	Filter   filter
	Outcomes []measure.Outcome
	Shown    string   // what is seen now, in words
	Errors   []string // what was chosen and cannot be

	typed url.Values
}

// A choice is one of several.
type choice struct {
	Name string
	On   bool
}

// Typed is the front of a value, as it was typed.
func (f form) Typed(name string) string { return cutText(f.typed.Get(name), 200) }
