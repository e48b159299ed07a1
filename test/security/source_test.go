package security_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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

// The product starts a program in one place: nvidia-smi, by its path and with fixed arguments. It never starts a shell.
func TestNoShell(t *testing.T) {
	var starts []string
	for name, file := range product(t) {
		for _, i := range file.Imports {
			if i.Path.Value == `"os/exec"` && name != "internal/gpu/smi_run.go" {
				t.Errorf("%s imports os/exec", name)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				of, _ := n.X.(*ast.Ident)
				if of == nil {
					return true
				}
				switch call := of.Name + "." + n.Sel.Name; call {
				case "exec.Command", "exec.CommandContext":
					starts = append(starts, name+": "+call)
				case "os.StartProcess", "syscall.Exec", "syscall.ForkExec", "syscall.StartProcess", "unix.Exec", "plugin.Open":
					t.Errorf("%s: %s", name, call)
				}
			case *ast.BasicLit:
				text, _ := strconv.Unquote(n.Value)
				if slices.Contains([]string{"sh", "bash", "/bin/sh", "/bin/bash", "cmd.exe", "powershell"}, text) {
					t.Errorf("%s names a shell: %s", name, n.Value)
				}
			}
			return true
		})
	}
	if want := []string{"internal/gpu/smi_run.go: exec.CommandContext"}; !slices.Equal(starts, want) {
		t.Errorf("want programs started by %v, got %v", want, starts)
	}
}

// The product makes files and folders with the modes of internal/file, which are not for everyone on the machine, or for its user alone.
func TestModesOfFiles(t *testing.T) {
	private := regexp.MustCompile(`^(0o[0-7]00|0)$`)
	modes := map[string]int{"os.OpenFile": 2, "os.Mkdir": 1, "os.MkdirAll": 1, "os.WriteFile": 2, "os.Chmod": 1, "file.Create": 1, "syscall.Open": 2}
	calls := 0
	for name, f := range product(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			call, _ := n.(*ast.CallExpr)
			if call == nil {
				return true
			}
			to, _ := call.Fun.(*ast.SelectorExpr)
			if to == nil {
				return true
			}
			of, _ := to.X.(*ast.Ident)
			if of == nil {
				return true
			}
			function := of.Name + "." + to.Sel.Name
			if function == "os.Create" || to.Sel.Name == "SaveAs" {
				t.Errorf("%s: %s makes files that everyone may read: want internal/file", name, function)
			}
			at, known := modes[function]
			if !known || len(call.Args) <= at {
				return true
			}
			calls++
			mode := types.ExprString(call.Args[at])
			switch {
			case private.MatchString(mode), mode == "file.Mode", mode == "file.FolderMode", name == "internal/file/write.go", name == "internal/file/file.go":
			case name == "internal/records/gzip.go" && mode == "info.Mode().Perm()": // the mode of the file that it compresses
			default:
				t.Errorf("%s: %s with mode %s: want file.Mode or file.FolderMode", name, function, mode)
			}
			return true
		})
	}
	if calls < 8 {
		t.Errorf("want the calls that make files, found %d", calls)
	}
}

// The product never turns certificate checks off. Only a configuration can, by tls_config.insecure_skip_verify.
func TestNothingSkipsCertificates(t *testing.T) {
	for name, file := range product(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && (id.Name == "InsecureSkipVerify" || id.Name == "VerifyPeerCertificate" || id.Name == "VerifyConnection") {
				t.Errorf("%s has %s", name, id.Name)
			}
			return true
		})
	}
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

// Dependencies of the build are pinned: modules by their hashes, the npm packages of the tests by a lock file.
func TestEverythingIsPinned(t *testing.T) {
	for _, sum := range []string{"go.sum", "tools/go.sum", "tools/sbom/go.sum", "tools/actionlint/go.sum", "tools/runbook/go.sum", "test/kubernetes/go.sum", "test/argo/go.sum", "test/flagger/go.sum", "test/mixin/go.sum", "tools/zizmor/requirements.txt", "test/tokenizers/package-lock.json"} {
		if info, err := os.Stat(filepath.Join(root, sum)); err != nil || info.Size() == 0 {
			t.Errorf("%s: want it there and not empty: %v", sum, err)
		}
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mod), "\nreplace") {
		t.Error("go.mod replaces a module: who imports replayd would get another one")
	}
}
