// Package docs_test checks the documents: every link between them leads to a file, and every anchor to a heading.
package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	links    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headings = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	code     = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	linked   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// pages returns the Markdown files of the repository, by path from its root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || path == "dist" || d.Name() == "testdata" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			text, err := os.ReadFile(filepath.Join("..", path))
			if err != nil {
				return err
			}
			found[path] = string(text)
		}
		return nil
	})
	if err != nil || len(found) < 40 {
		t.Fatalf("want 40 pages or more, got %d, %v", len(found), err)
	}
	return found
}

// anchors returns the anchors of a page's headings, as GitHub makes them: lower case, words joined by -, without other
// punctuation. A repeated heading gets a number; none is linked here.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range headings.FindAllStringSubmatch(regexp.MustCompile("(?s)```.*?```").ReplaceAllString(text, ""), -1) {
		title := linked.ReplaceAllString(m[1], "$1")
		all[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(title))] = true
	}
	return all
}

func TestLinks(t *testing.T) {
	all := pages(t)
	checked := 0
	for path, text := range all {
		for _, m := range links.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			checked++
			to := path
			if target != "" {
				to = filepath.Join(filepath.Dir(path), target)
				if _, err := os.Stat(filepath.Join("..", to)); err != nil {
					t.Errorf("%s: %s leads to no file", path, m[1])
					continue
				}
			}
			if anchor != "" && filepath.Ext(to) == ".md" && !anchors(all[to])[anchor] {
				t.Errorf("%s: %s leads to no heading", path, m[1])
			}
		}
	}
	if checked < 150 {
		t.Errorf("want 150 links or more, got %d", checked)
	}
}

// Cells of tables are short enough to read, where they are no code. bench, decisions and the changelog are not for reference.
func TestCells(t *testing.T) {
	for path, text := range pages(t) {
		if strings.HasPrefix(path, "bench/") || strings.HasPrefix(path, "docs/decisions/") || strings.HasPrefix(path, "internal/") || path == "CHANGELOG.md" {
			continue
		}
		for line := range strings.Lines(regexp.MustCompile("(?s)```.*?```").ReplaceAllString(text, "")) {
			if !strings.HasPrefix(line, "|") {
				continue
			}
			for cell := range strings.SplitSeq(strings.ReplaceAll(line, `\|`, ""), "|") {
				cell = strings.TrimSpace(cell)
				if len([]rune(cell)) > 120 && strings.Trim(code.ReplaceAllString(cell, ""), ", ") != "" {
					t.Errorf("%s: want cells of at most 120 characters, got %q", path, cell)
				}
			}
		}
	}
}

// The README is short enough for four minutes.
func TestREADME(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	words := 0
	for line := range strings.Lines(code.ReplaceAllString(string(text), "")) {
		if !strings.HasPrefix(line, "|") {
			words += len(strings.Fields(linked.ReplaceAllString(line, "$1")))
		}
	}
	if words > 800 {
		t.Errorf("want at most 800 words of prose, got %d", words)
	}
}

// The files and folders that CONTRIBUTING names are there.
func TestNamedFiles(t *testing.T) {
	text, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:internal|cmd|docs|alerts|dashboards|deploy|test|tools|bench)/[^`* ]*)`").FindAllStringSubmatch(string(text), -1)
	if len(named) < 20 {
		t.Errorf("want 20 names or more, got %d", len(named))
	}
	for _, m := range named {
		if _, err := os.Stat(filepath.Join("..", m[1])); err != nil && !strings.Contains(m[1], "NAME") {
			t.Error(err)
		}
	}
}

// CONTRIBUTING can be read in ten minutes, and its table of rooms has every package.
func TestCONTRIBUTING(t *testing.T) {
	text := pages(t)["CONTRIBUTING.md"]
	if n := len(strings.Fields(text)); n >= 1500 {
		t.Errorf("want fewer than 1,500 words, got %d", n)
	}
	rooms, err := os.ReadDir("../internal")
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range rooms {
		if !regexp.MustCompile("(?m)^\\|.*`" + room.Name() + "`").MatchString(text) {
			t.Errorf("want the room %s in the table", room.Name())
		}
	}
}

// The pages name only series that docs/reference/metrics.md has. Decisions and the changelog also tell of earlier names.
func TestNamedSeries(t *testing.T) {
	all := pages(t)
	reference := all["docs/reference/metrics.md"]
	named := 0
	for path, text := range all {
		if strings.HasPrefix(path, "docs/decisions/") || strings.HasPrefix(path, "internal/") || strings.HasPrefix(path, "bench/") || path == "CHANGELOG.md" {
			continue
		}
		for _, name := range regexp.MustCompile(`(?m)(?:^|[^:\w/.-])(replayd_[a-z0-9_]*[a-z0-9])\b`).FindAllStringSubmatch(text, -1) {
			named++
			series := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name[1], "_bucket"), "_sum"), "_count")
			if !strings.Contains(reference, "`"+name[1]) && !strings.Contains(reference, "`"+series) {
				t.Errorf("%s: docs/reference/metrics.md has no series %s", path, name[1])
			}
		}
	}
	if named < 200 {
		t.Errorf("want 200 names or more, got %d", named)
	}
}
