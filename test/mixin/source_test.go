package mixin_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-jsonnet"
	"github.com/google/go-jsonnet/formatter"
	"github.com/google/go-jsonnet/linter"
)

// lint is what jsonnet-lint does, and formatted what jsonnetfmt --test does.
func lint(path, text string) (said string, bad bool) {
	var out strings.Builder
	bad = linter.LintSnippet(jsonnet.MakeVM(), &out, []linter.Snippet{{FileName: path, Code: text}})
	return out.String(), bad
}

func formatted(path, text string) bool {
	want, err := formatter.Format(path, text, formatter.DefaultOptions())
	return err == nil && want == text
}

func TestSourceIsClean(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(repository, "mixin", "*.libsonnet"))
	if err != nil || len(paths) < 5 {
		t.Fatalf("want the files of the mixin, got %q, %v", paths, err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !formatted(path, string(text)) {
			t.Errorf("%s is not as jsonnetfmt formats it", path)
		}
		if said, bad := lint(path, string(text)); bad {
			t.Errorf("%s: %s", path, said)
		}
	}
}
