package report

// A form is what the dashboard lets its reader choose.
type form struct {
	Runs    []option
	Choices []choice
	Fields  []entry
	Shown   string   // what is seen now, in words
	Errors  []string // what was chosen and cannot be
}

// A choice is one of several.
type choice struct {
	Name, Label string
	Options     []option
}

type option struct {
	Name, Label string
	On          bool
}

// An entry is a value to be typed.
type entry struct{ Name, Label, Value, Hint, Kind string }
