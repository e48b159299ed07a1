package report

import "slices"

// SharedTexts are texts about runs, in the order in which they came. Runs with the same text share a line.
type SharedTexts []sharedText

type sharedText struct{ runs, text string }

// Add adds a text about a run; "" is ignored.
func (s *SharedTexts) Add(run, text string) {
	at := slices.IndexFunc(*s, func(t sharedText) bool { return t.text == text })
	switch {
	case text == "":
	case at < 0:
		*s = append(*s, sharedText{run, text})
	default:
		(*s)[at].runs += ", " + run
	}
}

// Lines returns a line for each text, after the runs that share it.
func (s SharedTexts) Lines() (lines []string) {
	for _, t := range s {
		lines = append(lines, t.runs+": "+t.text)
	}
	return lines
}
