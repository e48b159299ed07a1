package config

import (
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

// Places are the lines of a configuration file, by key. A key that the environment or a flag has set is on line 0.
type Places struct {
	file  string
	lines map[string]int
}

// An Invalid error is a configuration with faults. Its text has a line for each, in the order of the file's lines.
type Invalid struct {
	Faults Faults
	text   string
}

func (e *Invalid) Error() string { return e.text }

// Refuse is the error that says where each fault stands: file, line, and the name of the workload or target. It is nil
// without faults.
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

// named is a path with the name of the workload or the target that it leads into: workloads[2] "chat": trace.path.
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

// covered are the keys that are known to be at fault.
type covered map[string]bool

// covers makes them. An unknown key says nothing of the keys around it.
func (f Faults) covers() covered {
	paths := covered{}
	for _, fault := range f {
		if !fault.isUnknown() {
			paths[fault.Path] = true
		}
	}
	return paths
}

// has says whether a key, or what holds it, is at fault.
func (c covered) has(path string) bool {
	for ; path != ""; path = parent(path) {
		if c[path] {
			return true
		}
	}
	return c[""]
}

// Without gives the faults less those whose key, or what holds it, is at fault in known.
func (f Faults) Without(known Faults) Faults {
	paths := known.covers()
	return slices.DeleteFunc(slices.Clone(f), func(fault Fault) bool { return paths.has(fault.Path) })
}

// Around are the keys at which there is a fault, and all those that hold them. An unknown key leaves the others good.
func (f Faults) Around() map[string]bool {
	keys := map[string]bool{}
	for _, fault := range f {
		for path := fault.Path; path != "" && !keys[path] && !fault.isUnknown(); path = parent(path) {
			keys[path] = true
		}
	}
	return keys
}

// parent is the key around a key; empty for one at the top.
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

// lineOf is the line of a key, or of the nearest key around it that the file has; 0 when it has none.
func lineOf(lines map[string]int, path string) int {
	for ; path != ""; path = parent(path) {
		if line, ok := lines[path]; ok {
			return line
		}
	}
	return 0
}
