package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Errors about YAML repeat values of the file; ours do not.
func TestWithoutValues(t *testing.T) {
	for given, want := range map[string]string{
		"yaml: unmarshal errors:\n  line 2: cannot unmarshal !!str `sesame` into config.Authorization":                                 "yaml: unmarshal errors:\n  line 2: cannot unmarshal !!str into config.Authorization",
		"yaml: unmarshal errors:\n  line 2: cannot unmarshal !!str `se`s\nme` into a.B\n  line 3: cannot unmarshal !!str `x` into a.C": "yaml: unmarshal errors:\n  line 2: cannot unmarshal !!str into a.B\n  line 3: cannot unmarshal !!str into a.C",
		"yaml: unknown anchor 'sesame' referenced":                 "yaml: unknown anchor: a text that begins with * needs quotes",
		"yaml: cannot decode !!str `sesame` as a !!int":            "yaml: cannot decode !!str as a !!int",
		"yaml: invalid map key: []interface {}{\"sesame\"}":        "yaml: invalid map key",
		`parse "http://me:ses/ame@h": invalid port ":ses" after h`: "want an address, got one that cannot be read",
		"yaml: line 4: did not find expected ',' or ']'":           "yaml: line 4: did not find expected ',' or ']'",
	} {
		if got := WithoutValues(errors.New(given)).Error(); got != want {
			t.Errorf("%s:\nwant %s\ngot  %s", given, want, got)
		}
	}
}

// Addresses are shown without user and password, and without parameters that sound like a secret.
func TestWithoutUsers(t *testing.T) {
	for given, want := range map[string]string{
		"see http://me:sesame@h/m, ftp://sesame@h":       "see http://xxxxx@h/m, ftp://xxxxx@h",
		"http://h/m?api_key=sesame&a=1&X-Token=sesame#b": "http://h/m?api_key=xxxxx&a=1&X-Token=xxxxx#b",
		"http://h/m?a=1": "http://h/m?a=1",
	} {
		if got := WithoutUsers(given); got != want {
			t.Errorf("%s: want %s, got %s", given, want, got)
		}
	}
}

// Aliases that multiply and sections in sections without end are refused, in little memory.
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
