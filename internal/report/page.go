// Package report makes HTML pages: of one run, of several runs side by side, and a dashboard to choose runs from.
package report

import "replayd/internal/chart"

// A Page is one self-contained HTML file of texts, tables and plots. It is readable without JavaScript, which only adds
// tooltips and finer clouds of points. Texts are plain text, never HTML.
type Page struct {
	Title    string
	Lead     string   // the findings, in one or two sentences under the title
	Warnings []string // what a reader must know before the figures
	Pairs    []string // which rows of several runs are held against each other; a section has it too
	Facts    Facts    // the settings of the run
	Tiles    []Tile   // the figures that matter most
	Sections []Section
	Theme    Theme
	Made     string // the program and the time, in the footer

	form *form // the dashboard's choices; nil in a file
}

// Add adds the sections that have a title. A section without one has nothing to show.
func (p *Page) Add(sections ...Section) {
	for _, s := range sections {
		if s.Title != "" {
			p.Sections = append(p.Sections, s)
		}
	}
}

// A Theme is the color scheme of a page, dark or light; "" follows the reader's system.
type Theme string

// A Fact is a setting or a count with its name.
type Fact struct{ Name, Text string }

// Facts are a list of facts.
type Facts []Fact

// Add adds a fact, unless its text is empty.
func (f *Facts) Add(name, text string) {
	if text != "" {
		*f = append(*f, Fact{name, text})
	}
}

// A Tile is one large figure.
type Tile struct {
	Name, Text, Note string
	Level            Level
}

// A Level colors a tile; "" is neutral.
type Level string

// Levels.
const (
	Good Level = "ok"
	Poor Level = "warn"
	Bad  Level = "bad"
)

// A Section is the content under one heading: texts, then tables, then plots.
type Section struct {
	Title  string // states the finding, not only the topic
	Short  string // for the table of contents; "": the title
	Text   []string
	Tables []chart.Table
	Plots  []chart.Plot
}

func upper(text string) string {
	if text == "" || text[0] < 'a' || text[0] > 'z' {
		return text
	}
	return string(text[0]-'a'+'A') + text[1:]
}

// cutText returns the first most characters of a text, followed by … if the text is longer.
func cutText(text string, most int) string {
	letters := []rune(text)
	if len(letters) <= most {
		return text
	}
	return string(letters[:most]) + "…"
}
