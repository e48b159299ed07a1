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
	"strings"
)

// Write writes the owner's values into the files of a tree, and returns the paths of those that changed. What is made from them,
// dashboards and the chart's copies, is for `make dashboards chart`.
func (o Owner) Write(root string) ([]string, error) {
	changed, err := o.Changes(root)
	if err != nil {
		return nil, err
	}
	paths := slices.Sorted(maps.Keys(changed))
	for _, p := range paths {
		file := filepath.Join(root, p)
		if text := changed[p]; text == "" {
			err = os.Remove(file)
			_ = os.Remove(filepath.Dir(file)) // the folder, if nothing else is in it
		} else if err = os.MkdirAll(filepath.Dir(file), 0o755); err == nil {
			err = os.WriteFile(file, []byte(text), 0o644)
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
	rules := slices.DeleteFunc(slices.Collect(maps.Keys(texts)), func(p string) bool { return !matches("alerts/*.yaml", p) })
	of := make([]string, len(rules))
	for i, p := range rules {
		of[i] = texts[p]
	}
	all, err := recorded(of...)
	if err != nil {
		return nil, err
	}
	m := modulePattern.FindStringSubmatch(texts["go.mod"])
	if m == nil {
		return nil, errors.New("go.mod: want a line module PATH, got none")
	}
	places := append(o.modules(m[1]), o.links(all)...)
	places = append(places, o.names()...)
	changed := map[string]string{}
	seen := make([]bool, len(places))
	for p, text := range texts {
		now := text
		for i, place := range places {
			if !matches(place.files, p) {
				continue
			}
			seen[i] = true
			if now, err = place.rewrite(p, now); err != nil {
				return nil, fmt.Errorf("%s: %w", p, err)
			}
		}
		if now != text {
			changed[p] = now
		}
	}
	for i, place := range places {
		if !seen[i] {
			return nil, fmt.Errorf("%s: want a file, got none", place.files)
		}
	}
	if want := o.codeownersFile(); want != texts[codeownersPath] {
		changed[codeownersPath] = want
	}
	return changed, nil
}

const codeownersPath = ".github/CODEOWNERS"

func (o Owner) codeownersFile() string {
	if o.Codeowners == "" {
		return ""
	}
	return "* " + o.Codeowners + "\n"
}

// sources returns the texts of a tree that may depend on the owner, by path.
func sources(root string) (map[string]string, error) {
	texts := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", ".cache", "bin", "artifacts", "node_modules", "testdata", "results"}, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || !slices.Contains([]string{".go", ".mod", ".yaml", ".yml", ".md", ".html", ".service", ""}, path.Ext(d.Name())) && p != codeownersPath {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, p))
		texts[p] = string(text)
		return err
	})
	return texts, err
}

// A place is what depends on the owner in some files. It leaves a file as it is where that agrees already.
type place struct {
	files   string // a pattern of their paths: * is any name in one folder, **/ any folders
	rewrite func(path, text string) (string, error)
}

func matches(pattern, p string) bool {
	if rest, anywhere := strings.CutPrefix(pattern, "**/"); anywhere {
		pattern, p = rest, path.Base(p)
	}
	good, _ := path.Match(pattern, p) // the patterns are those below
	return good
}

// replaced is a place where a pattern that is there once or more is replaced.
func replaced(files, pattern, by string) place {
	re := regexp.MustCompile(pattern)
	return place{files, func(_, text string) (string, error) {
		if !re.MatchString(text) {
			return "", fmt.Errorf("want %s, got no such text", pattern)
		}
		return re.ReplaceAllString(text, by), nil
	}}
}

// lines is a place with lines that are there only with an owner: those that match mine are removed, and put stands after each that
// matches after.
func lines(files, mine, after string, put ...string) place {
	own, anchor := regexp.MustCompile(mine), regexp.MustCompile(after)
	return place{files, func(_, text string) (string, error) {
		var out strings.Builder
		found := false
		for line := range strings.Lines(text) {
			bare := strings.TrimSuffix(line, "\n")
			if own.MatchString(bare) {
				continue
			}
			out.WriteString(line)
			if anchor.MatchString(bare) {
				found = true
				for _, p := range put {
					out.WriteString(p + "\n")
				}
			}
		}
		if !found {
			return "", fmt.Errorf("want a line %s, got none", after)
		}
		return out.String(), nil
	}}
}
