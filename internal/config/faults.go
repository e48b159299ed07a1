package config

import (
	"slices"
	"strconv"
	"strings"

	"replayd/internal/fault"
	"replayd/internal/secret"
)

// at returns the place of a key and its line, 0 outside the file.
func (p *Places) at(key string) (place string, line int) {
	if p == nil {
		return "", 0
	}
	if name := p.named[key]; name != "" {
		return name, 0
	}
	if line = lineOf(p.lines, key); line > 0 {
		return p.file + ":" + strconv.Itoa(line), line
	}
	return p.file, 0
}

// Invalid is the error of a configuration with faults. Its text has one line per fault, in the order of the file.
type Invalid struct {
	Faults fault.List // without places
	text   string
}

func (e *Invalid) Error() string { return e.text }

// Refuse returns an error with the place of each fault: file, line, and the name of the workload, target or comparison.
// It returns nil if f is empty.
func (c *Config) Refuse(f fault.List) error {
	if len(f) == 0 {
		return nil
	}
	line := func(one fault.Fault) int { _, line := c.Places.at(one.Key); return line }
	f = slices.Clone(f)
	slices.SortStableFunc(f, func(a, b fault.Fault) int { return line(a) - line(b) })
	shown := f.Named(c.named)
	for i := range shown {
		shown[i].Place, _ = c.Places.at(f[i].Key)
		if c.Places != nil && c.Places.named[f[i].Key] != "" {
			shown[i].Key = "" // the flag stands for it
		}
		shown[i].Want = secret.InAddresses(f[i].Want)
	}
	return &Invalid{f, shown.Error()}
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

// covers returns the keys with faults. Unknown keys are excluded: the keys around them can be correct.
func covers(f fault.List) map[string]bool {
	keys := map[string]bool{}
	for _, one := range f {
		if !isUnknown(one) {
			keys[one.Key] = true
		}
	}
	return keys
}

// Without returns the faults of f except those for which known has a fault at the key or one of its parents.
func Without(f, known fault.List) fault.List {
	covered := covers(known)
	return slices.DeleteFunc(slices.Clone(f), func(one fault.Fault) bool {
		for key := one.Key; key != ""; key = parent(key) {
			if covered[key] {
				return true
			}
		}
		return covered[""]
	})
}

// Faulty returns the keys with faults and all their parents. Unknown keys are excluded: the keys around them can be
// correct.
func Faulty(f fault.List) map[string]bool {
	keys := map[string]bool{}
	for key := range covers(f) {
		for ; key != "" && !keys[key]; key = parent(key) {
			keys[key] = true
		}
	}
	return keys
}

// parent returns the key that contains path, "" at the top level.
func parent(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }

// lineOf returns the line of a key, or of its nearest parent in the file, or 0.
func lineOf(lines map[string]int, path string) int {
	for ; path != ""; path = parent(path) {
		if line, ok := lines[path]; ok {
			return line
		}
	}
	return 0
}
