package daemon

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/config"
)

// load writes the files of an invention and loads its configuration like serve.
func (v *invention) load(t *testing.T) (config.Config, error) {
	t.Helper()
	for path, text := range v.files {
		if _, err := os.Stat(path); err == nil {
			continue // a reload must not rewrite a file that is being read
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return loadText(t, v.dir, []byte(v.text.String()))
}

func loadText(t *testing.T, dir string, text []byte) (config.Config, error) {
	t.Helper()
	path := filepath.Join(dir, "replayd.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Load(path, nil, nil, func(string) {})
}

// name matches the name of a workload or a target behind its index.
var name = regexp.MustCompile(`\] "[wt][0-9]": `)

// placed matches a fault of Load behind its file name: line, key, what was wanted.
var placed = regexp.MustCompile(`^[1-9][0-9]*: [a-z_0-9.\[\]]+: [a-z]`)

// onlyBuilt matches the faults that only Build can find, because they depend on the rows of a file.
var onlyBuilt = regexp.MustCompile(`^([^:]*replayd.yaml:[1-9][0-9]*: )?workloads\[[0-9]\] "w[0-9]": (trace.from: want (0s to the trace's last row at |a window with a row in it)|repeat.every: want (more than|at least) |repeat.offset: want less than every )`)

// For a configuration whose keys mostly go together, Load reports every fault with its line, including all faults made
// on purpose. A valid configuration is shown and loads again to the same configuration. Build accepts it, or names the
// file with a fault.
func FuzzConfigurations(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, choices []byte) {
		v := invent(&dice{choices}, t.TempDir(), false)
		c, err := v.load(t)
		if err != nil {
			var told []string
			for line := range strings.Lines(err.Error()) {
				line = strings.TrimPrefix(strings.TrimSuffix(line, "\n"), filepath.Join(v.dir, "replayd.yaml")+":")
				line = name.ReplaceAllString(line, "].") // like in v.wrong
				if !placed.MatchString(line) {
					t.Errorf("want a line and a key, got %q\nin\n%s", line, &v.text)
				}
				told = append(told, line)
			}
			for _, wrong := range v.wrong {
				if !slices.ContainsFunc(told, func(line string) bool { return strings.HasPrefix(line, wrong) }) {
					t.Errorf("want %s among\n%s\nin\n%s", wrong, strings.Join(told, "\n"), &v.text)
				}
			}
			return
		}
		if len(v.wrong) > 0 {
			t.Fatalf("want a fault at %v, got none in\n%s", v.wrong, &v.text)
		}
		once, err := c.Show()
		if err != nil {
			t.Fatal(err)
		}
		again, err := loadText(t, v.dir, once)
		if err != nil {
			t.Fatalf("%v\nin\n%s", err, once)
		}
		twice, err := again.Show()
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%v\n-once +twice\n%s", err, cmp.Diff(string(once), string(twice)))
		}
		errs := built(t, c)
		if d := cmp.Diff(errs, built(t, again)); d != "" {
			t.Errorf("-built +built of what was shown\n%s", d)
		}
		for line := range strings.Lines(errs) {
			if !onlyBuilt.MatchString(line) {
				t.Errorf("Load does not tell %qin\n%s", line, &v.text)
			}
		}
	})
}

// built builds a generation and closes it again. It returns the faults.
func built(t *testing.T, c config.Config) string {
	t.Helper()
	c.Places = nil // the shown text has other line numbers
	g, err := Build(t.Context(), new(heard).options(c))
	if err != nil {
		return err.Error() + "\n"
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	return ""
}

// seeds adds random choices of several lengths to the corpus.
func seeds(f *testing.F) {
	f.Add([]byte{})
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 12 {
		choices := make([]byte, 40*n)
		for i := range choices {
			choices[i] = byte(r.UintN(254)) // below 254: no faults on purpose
		}
		f.Add(choices)
	}
}
