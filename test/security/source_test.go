package security_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// product returns every file that is compiled into the binary, for any build tags.
func product(t *testing.T) map[string]*ast.File {
	t.Helper()
	all := map[string]*ast.File{}
	for _, dir := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			name, _ := filepath.Rel(root, path)
			all[filepath.ToSlash(name)] = file
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(all) < 300 {
		t.Fatalf("want the product, got %d files", len(all))
	}
	return all
}

// Every test and every file that SECURITY.md names exists.
func TestSecurityPageNamesTests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	for _, dir := range []string{"cmd", "internal", "test", "deploy"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && d.Name() == "node_modules" {
				return filepath.SkipDir
			}
			if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			code, err := os.ReadFile(path)
			name, _ := filepath.Rel(root, filepath.Dir(path))
			for _, m := range function.FindAllSubmatch(code, -1) {
				tests[filepath.ToSlash(name)+" "+string(m[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// `internal/openai TestOutcomes`, and `TestTLS` for another test of the same folder.
	named := regexp.MustCompile("`(?:([a-z]+(?:/[a-z]+)*) )?((?:Test|Fuzz)\\w+)`")
	folder, count := "", 0
	for _, m := range named.FindAllStringSubmatch(string(text), -1) {
		if m[1] != "" {
			folder = m[1]
		}
		count++
		if !tests[folder+" "+m[2]] {
			t.Errorf("SECURITY.md names %s of %s, and there is none", m[2], folder)
		}
	}
	if count < 60 {
		t.Errorf("want the tests of every row, got %d", count)
	}
	files := regexp.MustCompile("`((?:cmd|internal|test|tools|deploy|docs)/[\\w./-]+)`")
	for _, m := range files.FindAllStringSubmatch(string(text), -1) {
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			t.Errorf("SECURITY.md names %s: %v", m[1], err)
		}
	}
}
