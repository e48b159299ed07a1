package report

import "strings"

// SharedTexts collects texts about runs. Runs with the same text share a line. The zero value is empty.
type SharedTexts struct {
	texts []string
	of    map[string][]string // the runs by text
}

// Add adds a text about a run; "" is ignored.
func (s *SharedTexts) Add(run, text string) {
	if text == "" {
		return
	}
	if s.of == nil {
		s.of = map[string][]string{}
	}
	if s.of[text] == nil {
		s.texts = append(s.texts, text)
	}
	s.of[text] = append(s.of[text], run)
}

// Lines returns a line for each text, after the runs that share it, in the order of the first ones.
func (s *SharedTexts) Lines() (lines []string) {
	for _, text := range s.texts {
		lines = append(lines, strings.Join(s.of[text], ", ")+": "+text)
	}
	return lines
}
