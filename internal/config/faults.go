package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"replayd/internal/secret"
)

// A Fault is one thing wrong with a configuration.
type Fault struct {
	Path string // the key, such as workloads[0].repeat.every
	Want string // what was wanted, and what was found
}

// Faults are everything wrong with a configuration.
type Faults []Fault

// cover says whether one of the faults is about a key or about what holds it.
func (f Faults) cover(path string) bool {
	return slices.ContainsFunc(f, func(fault Fault) bool {
		rest, ok := strings.CutPrefix(path, fault.Path)
		return ok && fault.Want != unknownKey && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

const unknownKey = "unknown key"

// in gives the faults their places in a file, in the order of its lines; nil when there are none.
func (f Faults) in(file string, lines map[string]int) error {
	type placed struct {
		line int
		text string
	}
	var all []placed
	for _, fault := range f {
		line := lineOf(lines, fault.Path)
		at := file
		if line > 0 {
			at += ":" + strconv.Itoa(line)
		}
		if fault.Path != "" {
			at += ": " + fault.Path
		}
		all = append(all, placed{line, at + ": " + secret.InAddresses(fault.Want)})
	}
	slices.SortStableFunc(all, func(a, b placed) int { return a.line - b.line })
	var errs []error
	for _, p := range all {
		errs = append(errs, errors.New(p.text))
	}
	return errors.Join(errs...)
}

// lineTable maps the path of each key in a YAML document to its line.
func lineTable(doc *yaml.Node) map[string]int {
	lines := map[string]int{}
	var walk func(n *yaml.Node, at string)
	walk = func(n *yaml.Node, at string) {
		switch n.Kind {
		case yaml.DocumentNode:
			for _, c := range n.Content {
				walk(c, at)
			}
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				key := join(at, n.Content[i].Value)
				lines[key] = n.Content[i].Line
				walk(n.Content[i+1], key)
			}
		case yaml.SequenceNode:
			for i, c := range n.Content {
				key := fmt.Sprintf("%s[%d]", at, i)
				lines[key] = c.Line
				walk(c, key)
			}
		}
	}
	walk(doc, "")
	return lines
}

// lineOf is the line of a key, or of the nearest key around it that the file has; 0 when it has none.
func lineOf(lines map[string]int, path string) int {
	for path != "" {
		if line, ok := lines[path]; ok {
			return line
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			break
		}
		path = path[:cut]
	}
	return 0
}
