// Package report makes HTML pages: of one run, of several side by side, and of many to choose from.
package report

import "replayd/internal/chart"

// A Page is one HTML file that needs nothing from outside: sections of text, tables and pictures. It is read without
// JavaScript too; that only adds what lies under the pointer and finer clouds of points. Texts are plain, never HTML.
type Page struct {
	Title    string
	Lead     string   // one or two sentences under the title: what was found
	Warnings []string // what a reader must know before the figures
	Facts    []Fact   // what was looked at
	Tiles    []Tile   // the figures that matter most
	Sections []Section
	Theme    Theme
	Made     string // by what and when, at the foot

	form *form // the dashboard's choices; nil in a file
}

// A Theme is the colours of a page; "" leaves them to the reader's system.
type Theme string

// Themes.
const (
	Dark  Theme = "dark"
	Light Theme = "light"
)

// A Fact is a name and what it was.
type Fact struct{ Name, Text string }

// A Tile is one large figure.
type Tile struct {
	Name, Text, Note string
	Level            Level
}

// A Level colours a tile: "" is neither good nor bad.
type Level string

// Levels.
const (
	Good Level = "ok"
	Poor Level = "warn"
	Bad  Level = "bad"
)

// A Section is what stands under one heading: texts, then tables, then pictures.
type Section struct {
	Title  string // says what is seen there, not only what it is about
	Short  string // for the list of sections; "": the title
	Text   []string
	Tables []chart.Table
	Plots  []chart.Plot
}
