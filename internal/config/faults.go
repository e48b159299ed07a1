package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"replayd/internal/secret"
)

// A Fault is one error in a configuration.
type Fault struct {
	Path string // the key, such as workloads[0].repeat.every
	Want string // expected and actual value
}

// Faults lists the errors of a configuration.
type Faults []Fault

// Places maps the keys of a configuration file to their lines. A key set by the environment or a flag is on line 0.
type Places struct {
	file  string
	lines map[string]int
}

// Invalid is the error of a configuration with faults. Its text has one line per fault, in the order of the file.
type Invalid struct {
	Faults Faults
	text   string
}

func (e *Invalid) Error() string { return e.text }

// Refuse returns an error with the place of each fault: file, line, and the name of the workload, target or comparison. It returns
// nil if f is empty.
func (c *Config) Refuse(f Faults) error {
	if len(f) == 0 {
		return nil
	}
	type placed struct {
		Fault
		line int
	}
	all := make([]placed, len(f))
	for i, fault := range f {
		all[i] = placed{Fault: fault}
		if c.Places != nil {
			all[i].line = lineOf(c.Places.lines, fault.Path)
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return a.line - b.line })
	sorted := make(Faults, len(all))
	var text strings.Builder
	for i, fault := range all {
		sorted[i] = fault.Fault
		if i > 0 {
			text.WriteByte('\n')
		}
		if c.Places != nil {
			text.WriteString(c.Places.file)
			if fault.line > 0 {
				text.WriteByte(':')
				text.WriteString(strconv.Itoa(fault.line))
			}
			text.WriteString(": ")
		}
		if fault.Path != "" {
			text.WriteString(c.named(fault.Path))
			text.WriteString(": ")
		}
		text.WriteString(secret.InAddresses(fault.Want))
	}
	return &Invalid{sorted, text.String()}
}

// named adds the name of the workload, target or comparison to a path: workloads[2] "chat": trace.path.
func (c *Config) named(path string) string {
	head, rest, ok := strings.Cut(path, "]")
	list, number, _ := strings.Cut(head, "[")
	i, err := strconv.Atoi(number)
	if !ok || err != nil || i < 0 {
		return path
	}
	name := ""
	switch {
	case list == "workloads" && i < len(c.Workloads):
		name = c.Workloads[i].Name
	case list == "targets" && i < len(c.Targets):
		name = c.Targets[i].Name
	case list == "comparisons" && i < len(c.Comparisons):
		name = c.Comparisons[i].Name
	}
	if !IsName(name) {
		return path
	}
	at := head + "] " + strconv.Quote(name)
	if rest == "" {
		return at
	}
	return at + ": " + strings.TrimPrefix(rest, ".")
}

// covered is a set of keys with known faults.
type covered map[string]bool

// covers returns the keys with faults. Unknown keys are excluded: the keys around them can be correct.
func (f Faults) covers() covered {
	paths := covered{}
	for _, fault := range f {
		if !fault.isUnknown() {
			paths[fault.Path] = true
		}
	}
	return paths
}

// has reports whether a key or one of its parents has a fault.
func (c covered) has(path string) bool {
	for ; path != ""; path = parent(path) {
		if c[path] {
			return true
		}
	}
	return c[""]
}

// Without returns the faults of f except those for which known has a fault at the key or one of its parents.
func (f Faults) Without(known Faults) Faults {
	paths := known.covers()
	return slices.DeleteFunc(slices.Clone(f), func(fault Fault) bool { return paths.has(fault.Path) })
}

// Around returns the keys with faults and all their parents. Unknown keys are excluded: the keys around them can be
// correct.
func (f Faults) Around() map[string]bool {
	keys := map[string]bool{}
	for _, fault := range f {
		for path := fault.Path; path != "" && !keys[path] && !fault.isUnknown(); path = parent(path) {
			keys[path] = true
		}
	}
	return keys
}

// parent returns the key that contains path, "" at the top level.
func parent(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }

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

// lineOf returns the line of a key, or of its nearest parent in the file, or 0.
func lineOf(lines map[string]int, path string) int {
	for ; path != ""; path = parent(path) {
		if line, ok := lines[path]; ok {
			return line
		}
	}
	return 0
}
