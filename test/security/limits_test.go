package security_test

import (
	"go/ast"
	"go/constant"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// units are the words after a number of the table, and what they multiply it by. Durations count in nanoseconds.
var units = map[string]int64{
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
	"s": int64(time.Second), "minutes": int64(time.Minute),
}

// names of constants of other packages.
var known = map[string]int64{
	"time.Second": int64(time.Second), "time.Minute": int64(time.Minute), "time.Hour": int64(time.Hour), "time.Millisecond": int64(time.Millisecond),
}

// value evaluates an expression of numbers.
func value(e ast.Expr) constant.Value {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.INT {
			return constant.MakeFromLiteral(e.Value, e.Kind, 0)
		}
	case *ast.ParenExpr:
		return value(e.X)
	case *ast.CallExpr: // of a type
		if len(e.Args) == 1 {
			return value(e.Args[0])
		}
	case *ast.SelectorExpr:
		if of, ok := e.X.(*ast.Ident); ok {
			if v, ok := known[of.Name+"."+e.Sel.Name]; ok {
				return constant.MakeInt64(v)
			}
		}
	case *ast.BinaryExpr:
		x, y := value(e.X), value(e.Y)
		if x == nil || y == nil {
			return nil
		}
		switch e.Op {
		case token.SHL:
			n, _ := constant.Uint64Val(y)
			return constant.Shift(x, token.SHL, uint(n))
		case token.ADD, token.SUB, token.MUL:
			return constant.BinaryOp(x, e.Op, y)
		}
	}
	return nil
}

// constants returns the whole numbers of a file's constants, variables and defaults.
func constants(file *ast.File) map[int64]bool {
	all := map[int64]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		var values []ast.Expr
		switch n := n.(type) {
		case *ast.ValueSpec:
			values = n.Values
		case *ast.KeyValueExpr: // a default
			values = []ast.Expr{n.Value}
		}
		for _, e := range values {
			if v := value(e); v != nil {
				i, _ := constant.Int64Val(v)
				all[i] = true
			}
		}
		return true
	})
	return all
}

// limitRows returns the rows of the table of limits: input, limit, files and tests.
func limitRows(t *testing.T) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "\n## Limits on untrusted input\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for line := range strings.Lines(table) {
		if cells := strings.Split(strings.TrimSpace(line), " | "); found && strings.HasPrefix(line, "| ") && len(cells) == 4 && cells[0] != "| input" {
			rows = append(rows, cells)
		}
	}
	if len(rows) < 40 {
		t.Fatalf("want the rows of the table, got %d", len(rows))
	}
	return rows
}

// Each number of the table of limits is a constant of a file that its row names.
func TestSecurityPageNamesLimits(t *testing.T) {
	files := product(t)
	number := regexp.MustCompile(`(^|[\s(])(\d{1,3}(?:,\d{3})+\b|\d+\b)(?: (KiB|MiB|GiB|s|minutes)\b)?`)
	path := regexp.MustCompile("`([\\w./-]+\\.go)`")
	checked := 0
	for _, row := range limitRows(t) {
		here := map[int64]bool{}
		for _, m := range path.FindAllStringSubmatch(row[2], -1) {
			file := files[m[1]]
			if file == nil {
				t.Errorf("%s: no file %s of the product", row[0], m[1])
				continue
			}
			for v := range constants(file) {
				here[v] = true
			}
		}
		for _, m := range number.FindAllStringSubmatch(row[1], -1) {
			v := constant.MakeFromLiteral(strings.ReplaceAll(m[2], ",", ""), token.INT, 0)
			n, _ := constant.Int64Val(v)
			if m[3] != "" {
				n *= units[m[3]]
			}
			if checked++; !here[n] {
				t.Errorf("%s: no constant of %s is %s", row[0], row[2], strings.TrimSpace(m[0]))
			}
		}
	}
	if checked < 50 {
		t.Errorf("want the numbers of the table, got %d", checked)
	}
}

// decoders are the functions that read outside bytes, by package. A bounded number of them is in each file that calls one.
var decoders = map[string][]string{
	"json": {"Unmarshal", "NewDecoder"}, "yaml": {"Unmarshal", "NewDecoder"}, "xml": {"Unmarshal", "NewDecoder"},
	"gzip": {"NewReader"}, "zlib": {"NewReader"}, "flate": {"NewReader"}, "bzip2": {"NewReader"}, "zstd": {"NewReader"}, "csv": {"NewReader"},
	"base64": {"NewDecoder"}, "gob": {"NewDecoder"}, "bufio": {"NewScanner", "NewReader", "NewReaderSize"},
	"io": {"ReadAll"}, "os": {"ReadFile"}, "file": {"Read"},
	"textparse": {"New", "NewPromParser", "NewOpenMetricsParser"},
}

// Each file that decodes outside bytes is in the table of decoders, with the row of the limits that bounds what it reads.
func TestSecurityPageNamesDecoders(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n### What decodes it\n")
	table, _, _ = strings.Cut(table, "\n## ")
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("`((?:cmd|internal)/[\\w./-]+\\.go)`").FindAllStringSubmatch(table, -1) {
		listed[m[1]] = true
	}
	for name, file := range product(t) {
		calls := ""
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if of, ok := s.X.(*ast.Ident); ok && slices.Contains(decoders[of.Name], s.Sel.Name) {
					calls = of.Name + "." + s.Sel.Name
				}
			}
			return true
		})
		if calls != "" && !listed[name] {
			t.Errorf("%s calls %s, and SECURITY.md does not say what bounds it", name, calls)
		}
		if calls == "" && listed[name] {
			t.Errorf("SECURITY.md has %s among the decoders, and it decodes nothing", name)
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("SECURITY.md has %s among the decoders, and there is none", name)
	}
}
