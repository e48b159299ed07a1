package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const notesFile = "notes.md"

// notes writes the section of CHANGELOG.md about this version.
func (r *release) notes(context.Context) error {
	text, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	section, err := changes(string(text), r.version)
	if err != nil {
		return err
	}
	section = absolute(section, r.owner.Repository, r.revision)
	return os.WriteFile(filepath.Join(r.out, notesFile), []byte(section), 0o644)
}

var relativeLinks = regexp.MustCompile(`\[([^\]\n]*)\]\(([^)\s:]+)\)`)

// absolute makes the links to files of the repository lead to its public place at a commit, because notes are read elsewhere. Without a
// public place their words stay.
func absolute(text, repository, revision string) string {
	if repository == "" {
		return relativeLinks.ReplaceAllString(text, "$1")
	}
	return relativeLinks.ReplaceAllString(text, "[$1]("+repository+"/blob/"+revision+"/$2)")
}

var sections = regexp.MustCompile(`(?m)^## \[?([^\]\s]+).*$`)

// changes returns the section of a changelog about a version, without its heading. A commit without a tag has the section Unreleased, a
// pre-release either.
func changes(text string, v version) (string, error) {
	want := []string{"Unreleased"}
	if v.tagged() {
		want = []string{v.String()}
		if v.prerelease != "" {
			want = append(want, "Unreleased")
		}
	}
	found := sections.FindAllStringSubmatchIndex(text, -1)
	for _, name := range want {
		for i, m := range found {
			if text[m[2]:m[3]] != name {
				continue
			}
			end := len(text)
			if i+1 < len(found) {
				end = found[i+1][0]
			}
			section := strings.TrimSpace(text[m[1]:end])
			if section == "" {
				return "", fmt.Errorf("CHANGELOG.md: ## %s: want the changes of the release, got none", name)
			}
			return section + "\n", nil
		}
	}
	return "", fmt.Errorf("CHANGELOG.md: want the section ## %s, there is none", want[0])
}
