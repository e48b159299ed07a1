//go:build monitors

package monitors_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"replayd/test/outside"
)

// halfOpen makes each window shorter by Prometheus' least duration. Before Prometheus 3.0 a window had a sample on its left border too
// (https://prometheus.io/docs/prometheus/latest/migration/, "Range selectors and lookback exclude samples coinciding with the left
// boundary"). In tests every window has one; scrapes are never so punctual.
func halfOpen(t *testing.T, dir string, f *file) {
	t.Helper()
	rewrite(t, dir, f, func(expr string) string { return shorter(t, expr) })
}

// rewrite copies the rules that the tests read, with other expressions. Each rule costs time at each minute of a test.
func rewrite(t *testing.T, dir string, f *file, change func(expr string) string) {
	t.Helper()
	copies := make([]map[string][]map[string]any, len(f.Rules))
	for i, path := range f.Rules {
		text, err := os.ReadFile(path)
		if err == nil {
			err = yaml.Unmarshal(text, &copies[i])
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	read := fmt.Sprint(f.Tests[0].Alerts, f.Tests[0].PromQL) // and what the rules read that are read
	all := strings.Contains(read, "__name__") || strings.Contains(read, "ALERTS{alertstate")
	kept := map[string]bool{}
	for grown := true; grown; {
		grown = false
		for _, rules := range copies {
			for _, rule := range eachRule(rules) {
				text := fmt.Sprint(rule)
				record, _ := rule["record"].(string)
				alert, _ := rule["alert"].(string)
				if !kept[text] && (all || strings.Contains(read, record+alert)) {
					kept[text], grown, read = true, true, read+text
				}
			}
		}
	}
	for i, rules := range copies {
		for _, group := range rules["groups"] {
			var few []any
			for _, r := range group["rules"].([]any) {
				if rule := r.(map[string]any); kept[fmt.Sprint(rule)] {
					rule["expr"] = change(rule["expr"].(string))
					few = append(few, rule)
				}
			}
			group["rules"] = few
		}
		text, err := yaml.Marshal(rules)
		if err != nil {
			t.Fatal(err)
		}
		f.Rules[i] = outside.Write(t, dir, filepath.Base(f.Rules[i]), string(text))
	}
}

func eachRule(rules map[string][]map[string]any) (all []map[string]any) {
	for _, group := range rules["groups"] {
		for _, r := range group["rules"].([]any) {
			all = append(all, r.(map[string]any))
		}
	}
	return all
}

// shorter takes a millisecond off each window of an expression.
func shorter(t *testing.T, promQL string) string {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(promQL)
	if err != nil {
		t.Fatal(err)
	}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.MatrixSelector:
			n.Range -= time.Millisecond
		case *parser.SubqueryExpr:
			n.Range -= time.Millisecond
		}
		return nil
	})
	wrapped := map[parser.Node]bool{}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		call, ok := n.(*parser.Call)
		if !ok || call.Func.Name != "increase" || wrapped[call] {
			return nil
		}
		// The increase of the whole window, without the last bits that the two divisions leave.
		whole := call.Args[0].(*parser.MatrixSelector).Range + time.Millisecond
		inner := *call
		longer, err := parser.NewParser(parser.Options{}).ParseExpr(fmt.Sprintf("round(x * (%d / %d), 1 / 2^30)",
			whole.Milliseconds(), whole.Milliseconds()-1))
		if err != nil {
			return err
		}
		round := longer.(*parser.Call)
		round.Args[0].(*parser.BinaryExpr).LHS = &inner
		*call, wrapped[&inner] = *round, true
		return nil
	})
	return expr.String()
}
