package main

import (
	"os"
	"regexp"
	"testing"
)

// withOwner is what `make owner` adds to the page: addresses of the other documents.
var withOwner = regexp.MustCompile(` href="[^"]*"( title=)|<a href="[^"]*">Documents</a>\n`)

// The page that replayd serves is the document as it is rendered now.
func TestPageIsRendered(t *testing.T) {
	want, err := render()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != withOwner.ReplaceAllString(string(got), "$1") {
		t.Errorf("%s is not what %s gives now: make runbook", target, source)
	}
}
