package trace

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"replayd/internal/fault"
	"replayd/internal/number"
)

// Unused are the rows of a file by the keys that are not read, at most mostUnused of them.
type Unused map[string]int

const mostUnused = 16

// Add counts a key of a row.
func (u Unused) Add(key string) {
	if n, known := u[key]; known || len(u) < mostUnused {
		u[strings.Clone(key)] = n + 1
	}
}

// String names the keys, with their rows.
func (u Unused) String() string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(u)) {
		keys = append(keys, fmt.Sprintf("%s (%s)", fault.Excerpt([]byte(key)), number.Count(u[key], "row")))
	}
	return "keys that are not used: " + strings.Join(keys, ", ")
}
