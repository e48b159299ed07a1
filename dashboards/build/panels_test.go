package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	verdicts "replayd/internal/canary"
)

// Lines of workloads, targets, replicas, processes and GPUs differ in color, and each keeps its color from panel to
// panel: Grafana takes it from the name. No override gives all of them one color.
func TestColorsAreByName(t *testing.T) {
	names := map[string]bool{}
	for name, b := range boards() {
		for _, p := range b.all() {
			if p.Type != "timeseries" {
				continue
			}
			for _, q := range p.Targets {
				if !regexp.MustCompile(`\{\{(workload|target|address|instance|gpu)\}\}`).MatchString(q.LegendFormat) {
					continue
				}
				if mode := p.defaults()["color"].(object)["mode"]; mode != byName {
					t.Errorf("%s: %q: want colors %s, got %s", name, p.Title, byName, mode)
				}
				if regexp.MustCompile(`\{\{workload\}\}.*\{\{model\}\}`).MatchString(q.LegendFormat) {
					names[q.LegendFormat] = true
				}
				shown := regexp.MustCompile(`\{\{\w+\}\}`).ReplaceAllString(q.LegendFormat, "any")
				for _, o := range p.FieldConfig["overrides"].([]object) {
					matcher := o["matcher"].(object)
					one := slices.ContainsFunc(o["properties"].([]object), func(p object) bool { return p["id"] == "color" })
					if one && matches(t, matcher, q.RefID, shown) {
						t.Errorf("%s: %q: want a color for each of %q, got one for all", name, p.Title, q.LegendFormat)
					}
				}
			}
		}
	}
	if len(names) != 1 {
		t.Errorf("want one form of the names of workloads, got %v", names)
	}
}

// matches reports whether an override is of a query's series, by its letter or by the displayed name.
func matches(t *testing.T, matcher object, letter, shown string) bool {
	t.Helper()
	if matcher["id"] == "byFrameRefID" {
		return matcher["options"] == letter
	}
	pattern := regexp.MustCompile(`^/(.*)/$`).ReplaceAllString(matcher["options"].(string), "$1")
	return regexp.MustCompile(pattern).MatchString(shown)
}

// A comparison without "bool" has the value of its left side, such as +Inf, and not 1. As a factor it must be one with
// 1, or the other factor 0.
func TestFactorsAreFlags(t *testing.T) {
	each(t, func(where string, expr parser.Expr) {
		parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
			product, ok := n.(*parser.BinaryExpr)
			if !ok || product.Op != parser.MUL {
				return nil
			}
			if product.LHS.String() == "0" {
				return nil
			}
			for _, side := range []parser.Expr{product.LHS, product.RHS} {
				for p, in := side.(*parser.ParenExpr); in; p, in = side.(*parser.ParenExpr) {
					side = p.Expr
				}
				flag, ok := side.(*parser.BinaryExpr)
				if !ok || !flag.Op.IsComparisonOperator() || flag.ReturnBool {
					continue
				}
				if flag.Op != parser.EQLC || flag.RHS.String() != "1" {
					t.Errorf("%s: want 0 or 1 as a factor (== bool), got %s", where, product)
				}
			}
			return nil
		})
	})
}

// "More blocks are needed" is only said while blocks count: where all are skipped, the panel says why, whether or not
// the comparison calls itself blind yet.
func TestWhyKnowsSkippedBlocks(t *testing.T) {
	const skips = "replayd_comparison_blocks_skipped_total"
	found, said := 0, false
	for _, p := range comparison().all() {
		if p.Title != "Why" {
			continue
		}
		for _, q := range p.Targets {
			expr, err := parser.NewParser(parser.Options{}).ParseExpr(filled(q.Expr))
			if err != nil {
				t.Fatal(err)
			}
			said = said || q.LegendFormat == "skipped: {{reason}}" && strings.Contains(q.Expr, skips)
			parser.Inspect(expr, func(n parser.Node, above []parser.Node) error {
				s, ok := n.(*parser.VectorSelector)
				other := func(m *labels.Matcher) bool { return m.Name == "reason" && !m.Matches("few_blocks") }
				if !ok || s.Name != "replayd_comparison_undecided" || slices.ContainsFunc(s.LabelMatchers, other) {
					return nil
				}
				found++
				if !slices.ContainsFunc(above, func(n parser.Node) bool {
					b, ok := n.(*parser.BinaryExpr)
					return ok && (b.Op == parser.LUNLESS && strings.Contains(b.RHS.String(), skips) ||
						b.Op == parser.LAND && strings.Contains(b.LHS.String(), skips))
				}) {
					t.Errorf("%s: want few_blocks only where blocks are not skipped, got %s", q.RefID, q.Expr)
				}
				return nil
			})
		}
		for _, reason := range verdicts.Skips {
			if !strings.Contains(fmt.Sprint(p.FieldConfig), "skipped: "+string(reason)) {
				t.Errorf("want words for blocks that are skipped because of %s", reason)
			}
		}
	}
	if found == 0 || !said {
		t.Errorf("want few_blocks and the skipped blocks in the panel, got %d, %v", found, said)
	}
}

// No panel is a bare "No data": each names the data that it needs, in closed rows too. The row Sessions is closed, because
// few workloads have sessions.
func TestEmptyPanelsSayWhy(t *testing.T) {
	closed := []string{}
	for name, b := range boards() {
		for _, p := range b.all() {
			if p.Type == "row" {
				if *p.Collapsed && strings.HasPrefix(name, "canary") {
					closed = append(closed, strings.Fields(p.Title)[0])
				}
				continue
			}
			text, _ := p.defaults()["noValue"].(string)
			if (text == "") != (p.Type == "table") { // a table has it in each empty cell
				t.Errorf("%s: %q: want a text for where there is no data, and none in a table; got %q", name, p.Title, text)
			}
		}
	}
	if !slices.Equal(closed, []string{"Sessions:"}) {
		t.Errorf("canary.json: want the sessions in a closed row, got %q", closed)
	}
}

// A panel with quantiles of classic buckets says how wide they are, by a bucket that the histogram has. One of native
// histograms does not.
func TestCoarseQuantilesAreTold(t *testing.T) {
	text, err := os.ReadFile(repository + "/docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	bounds := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\| ([\w ,]+) \| ([\d. ]+) \|$`).FindAllStringSubmatch(string(text), -1) {
		for name := range strings.SplitSeq(m[1], ", ") {
			bounds[strings.ToLower(strings.ReplaceAll(name, " ", "_"))] = " " + m[2] + " "
		}
	}
	told := regexp.MustCompile(`of classic buckets.*, such as ([\d.]+) to ([\d.]+) s; .* within 10 %: see Histograms in docs`)
	quantile := regexp.MustCompile(`histogram_quantile\([^{]*replayd_(\w+)_seconds_bucket|replayd_(\w+)_seconds:quantile`)
	drawn := map[string]bool{}
	for name, b := range boards() {
		for _, p := range b.all() {
			said := told.FindStringSubmatch(p.Description)
			var of string
			for _, q := range p.Targets {
				if m := quantile.FindStringSubmatch(q.Expr); m != nil {
					of = m[1] + m[2]
				}
			}
			if native := strings.HasPrefix(name, "native/"); (of != "" && !native) != (said != nil) {
				t.Errorf("%s: %q: want it said where quantiles are of classic buckets, got %q", name, p.Title, p.Description)
			}
			if said == nil {
				continue
			}
			drawn[of] = true
			if !strings.Contains(bounds[of], " "+said[1]+" "+said[2]+" ") {
				t.Errorf("%s: %q: want a bucket of %s (%s), got %s to %s", name, p.Title, of, bounds[of], said[1], said[2])
			}
		}
	}
	if len(drawn) != len(wideBuckets) {
		t.Errorf("want panels of all of %v, got %v", wideBuckets, drawn)
	}
}

// The panel has one verdict. In mode verdict a blind comparison is undecided, and "Why" says that it is blind.
func TestOneVerdict(t *testing.T) {
	for _, p := range comparison().all() {
		if p.Title != "Verdict" {
			continue
		}
		for _, q := range p.Targets[1:] {
			expr, err := parser.NewParser(parser.Options{}).ParseExpr(filled(q.Expr))
			if err != nil {
				t.Fatal(err)
			}
			parser.Inspect(expr, func(n parser.Node, above []parser.Node) error {
				watched := func(n parser.Node) bool {
					b, ok := n.(*parser.BinaryExpr)
					return ok && b.Op == parser.LAND && strings.Contains(b.RHS.String(), `mode="watch"`)
				}
				s, ok := n.(*parser.VectorSelector)
				if ok && s.Name == "replayd_comparison_blind" && !slices.ContainsFunc(above, watched) {
					t.Errorf("%s: want what is blind only in mode watch, got %s", q.RefID, q.Expr)
				}
				return nil
			})
		}
		return
	}
	t.Error("want a panel Verdict, got none")
}
