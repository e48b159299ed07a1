package owner

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
)

// Write writes the owner's values into the files of a tree, and returns the paths of those that changed. What is made
// from them, dashboards and the chart's copies, is for `make dashboards chart`.
func (o Owner) Write(root string) ([]string, error) {
	changed, err := o.Changes(root)
	if err != nil {
		return nil, err
	}
	paths := slices.Sorted(maps.Keys(changed))
	for _, p := range paths {
		file := filepath.Join(root, p)
		if changed[p] == "" {
			err = os.Remove(file)
		} else {
			err = os.WriteFile(file, []byte(changed[p]), 0o644)
		}
		if err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// Changes returns the new texts of the files that do not agree with the owner, by path; "" is a file that there should not be.
func (o Owner) Changes(root string) (map[string]string, error) {
	texts, err := sources(root)
	if err != nil {
		return nil, err
	}
	m := regexp.MustCompile(`(?m)^module (\S+)$`).FindStringSubmatch(texts["go.mod"])
	if m == nil {
		return nil, errors.New("go.mod: want a line module PATH, got none")
	}
	now := maps.Clone(texts)
	for _, place := range o.places(m[1]) {
		re, found := regexp.MustCompile(place.pattern), false
		for p, text := range now {
			if place.in(p) && re.MatchString(text) {
				now[p], found = re.ReplaceAllString(text, place.by), true
			}
		}
		if !found {
			return nil, fmt.Errorf("%s: want %s, got no such text", place.files, place.pattern)
		}
	}
	o.linkAlerts(now)
	now[codeownersPath] = ""
	if o.Codeowners != "" {
		now[codeownersPath] = "* " + o.Codeowners + "\n"
	}
	maps.DeleteFunc(now, func(p, text string) bool { return text == texts[p] })
	return now, nil
}

const codeownersPath = ".github/CODEOWNERS"

// sources returns the texts of a tree that may depend on the owner, by path.
func sources(root string) (map[string]string, error) {
	texts := map[string]string{}
	skipped := []string{".git", ".cache", "bin", "artifacts", "node_modules", "testdata", "results"}
	read := []string{".go", ".mod", ".yaml", ".yml", ".md", ".html", ".service", ""}
	err := fs.WalkDir(os.DirFS(root), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skipped, d.Name()):
			return fs.SkipDir
		case !d.Type().IsRegular() || !slices.Contains(read, path.Ext(p)):
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, p))
		texts[p] = string(text)
		return err
	})
	return texts, err
}
