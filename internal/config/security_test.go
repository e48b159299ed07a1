package config

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Exponential aliases and endless nesting are rejected with little memory.
func TestHostileYAML(t *testing.T) {
	aliases := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 10; i++ {
		aliases += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	file := filepath.Join(t.TempDir(), "replayd.yaml")
	for name, c := range map[string]struct{ text, want string }{
		"aliases":            {aliases, "excessive aliasing"},
		"aliases of a key":   {strings.ReplaceAll(aliases, "a9:", "workloads:"), "excessive aliasing"},
		"depth":              {"targets: " + strings.Repeat("[", 100_000), "exceeded max depth"},
		"an alias in itself": {"targets: &a [*a]", "contains itself"},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := load(t, file)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %q, got %.300v", name, c.want, err)
		}
		if made := after.TotalAlloc - before.TotalAlloc; made > 512<<20 {
			t.Errorf("%s: %d bytes were allocated", name, made)
		}
	}
}
