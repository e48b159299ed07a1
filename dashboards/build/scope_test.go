package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// each calls check with every expression of every dashboard, parsed, and its place.
func each(t *testing.T, check func(where string, expr parser.Expr)) {
	t.Helper()
	promQL := parser.NewParser(parser.Options{})
	for name, b := range boards() {
		for at, text := range expressions(t, b) {
			expr, err := promQL.ParseExpr(filled(text))
			if err != nil {
				t.Fatalf("%s: %s: %v", name, at, err)
			}
			check(name+": "+at, expr)
		}
	}
}

// Targets of one name in two clusters or namespaces are two: a query for one shows nothing of the other.
func TestSelectorsAreOfWhatWasChosen(t *testing.T) {
	each(t, func(where string, expr parser.Expr) {
		wanted := []string{"cluster", "namespace"}
		if _, name, found := strings.Cut(where, ": variable "); found {
			if i := slices.Index(wanted, name); i >= 0 {
				wanted = wanted[:i] // each list depends on the choices before it
			}
		}
		for _, s := range parser.ExtractSelectors(expr) {
			for _, label := range wanted {
				if !slices.ContainsFunc(s, func(m *labels.Matcher) bool { return m.Name == label && m.Value == "x" }) {
					t.Errorf("%s: want %s=~\"$%s\" in each selector, got %v", where, label, label, s)
				}
			}
		}
	})
}

// Names of replicas, ranks and GPUs are unique only within a target of a namespace of a cluster.
func TestReplicasOfTwoFleetsAreTwo(t *testing.T) {
	each(t, func(where string, expr parser.Expr) {
		parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
			a, ok := n.(*parser.AggregateExpr)
			if !ok || a.Without || !slices.ContainsFunc(a.Grouping, func(l string) bool { return slices.Contains([]string{"address", "rank", "uuid", "instance"}, l) }) {
				return nil
			}
			if !slices.Contains(a.Grouping, "cluster") || !slices.Contains(a.Grouping, "namespace") {
				t.Errorf("%s: want cluster and namespace kept, got %s", where, a)
			}
			return nil
		})
	})
}

// always reports whether an expression has a value even without any series.
func always(e parser.Expr) bool {
	switch e := e.(type) {
	case *parser.NumberLiteral:
		return true
	case *parser.ParenExpr:
		return always(e.Expr)
	case *parser.UnaryExpr:
		return always(e.Expr)
	case *parser.AggregateExpr:
		return always(e.Expr)
	case *parser.Call:
		for _, arg := range e.Args {
			if arg.Type() != parser.ValueTypeString && !always(arg) {
				return false
			}
		}
		return true
	case *parser.BinaryExpr:
		switch e.Op {
		case parser.LOR:
			return always(e.LHS) || always(e.RHS)
		case parser.LUNLESS:
			return always(e.LHS)
		default:
			return always(e.LHS) && always(e.RHS)
		}
	default:
		return false
	}
}

// No expression is 0 without data, because 0 looks good.
func TestNothingIsShownOfNothing(t *testing.T) {
	each(t, func(where string, expr parser.Expr) {
		if where := strings.TrimPrefix(where, "native/"); always(expr) && where != "canary.json: p90 now ÷ p90 before D" && where != "canary.json: variable before" && where != "correlation.json: variable before" {
			t.Errorf("%s: want no value where there are no series, got %s", where, expr)
		}
	})
}

// Grafana shows "no data" in the color below the first threshold.
func TestNoDataIsNotGreen(t *testing.T) {
	for name, b := range boards() {
		for _, p := range b.all() {
			if p.Type != "stat" {
				continue
			}
			list, _ := p.defaults()["mappings"].([]object)
			if !slices.ContainsFunc(list, func(m object) bool {
				return m["type"] == "special" && m["options"].(object)["result"].(object)["color"] == "text"
			}) {
				t.Errorf("%s: %q: want a mapping of no value to no color, got %v", name, p.Title, list)
			}
			for _, q := range p.Targets {
				if !q.Instant || q.Range {
					t.Errorf("%s: %q: want what is now, not the last there was", name, p.Title)
				}
			}
		}
	}
}

// A flag that is 1 must not be hidden by another that is 0: "or" takes the left one of two series with the same labels.
func TestFlagsDoNotHideOneAnother(t *testing.T) {
	document, err := os.ReadFile(repository + "/docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| gauge \\| 0 or 1 ").FindAllStringSubmatch(string(document), -1) {
		flags[m[1]] = true
	}
	if !flags["replayd_gpu_row_remap_failed"] || !flags["replayd_guard_open"] {
		t.Fatalf("want the flags of docs/reference/metrics.md, got %v", flags)
	}
	var flag func(e parser.Expr) bool
	flag = func(e parser.Expr) bool {
		switch e := e.(type) {
		case *parser.ParenExpr:
			return flag(e.Expr)
		case *parser.AggregateExpr:
			return flag(e.Expr)
		case *parser.VectorSelector:
			return flags[e.Name]
		}
		return false
	}
	each(t, func(where string, expr parser.Expr) {
		parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
			if b, ok := n.(*parser.BinaryExpr); ok && b.Op == parser.LOR && flag(b.LHS) && flag(b.RHS) {
				t.Errorf("%s: want the flags compared before they are joined, got %s", where, b)
			}
			return nil
		})
	})
}

// selectorsOf returns the selectors of a series in the queries
// of a panel, as functions that report matching label values.
func selectorsOf(t *testing.T, dashboard, panel, series string) (takes []func(label, value string) bool) {
	t.Helper()
	each(t, func(where string, expr parser.Expr) {
		if !strings.HasPrefix(where, dashboard+": "+panel+" ") {
			return
		}
		for _, s := range parser.ExtractSelectors(expr) {
			of := func(label, value string) bool {
				return !slices.ContainsFunc(s, func(m *labels.Matcher) bool { return m.Name == label && !m.Matches(value) })
			}
			if of("__name__", series) {
				takes = append(takes, of)
			}
		}
	})
	if len(takes) == 0 {
		t.Fatalf("%s: %q: want selectors of %s, got none", dashboard, panel, series)
	}
	return takes
}

// Requests that find no lane are the service's fault: it did not answer earlier requests in time.
func TestOverloadIsNoFaultOfTheMeasurement(t *testing.T) {
	for dashboard, panel := range map[string]string{"canary.json": "Measurement", "health.json": "Not sent"} {
		for _, takes := range selectorsOf(t, dashboard, panel, "replayd_requests_dropped_total") {
			if takes("reason", "overload") || takes("reason", "filtered") || !takes("reason", "missed") {
				t.Errorf("%s: %q: want what replayd held back or missed itself", dashboard, panel)
			}
		}
	}
}

// Alerts on a process have no workload and no target, alerts on a target no workload. They are shown for any choice.
func TestAlertsWithoutAWorkloadAreShown(t *testing.T) {
	for _, panel := range []string{"Alerts firing", "Firing alerts by name"} {
		for _, takes := range selectorsOf(t, "fleet.json", panel, "ALERTS") {
			for _, label := range []string{"workload", "target"} {
				if !takes(label, "x") || !takes(label, "") || takes(label, "y") {
					t.Errorf("%q: want the alerts of the chosen %s and those of none", panel, label)
				}
			}
		}
	}
}

// A workload that is gone or held back has no bad requests, and a table sorts a missing value below all others.
func TestWhatIsGoneOrHeldBackIsWorse(t *testing.T) {
	for _, p := range fleet().all() {
		if p.Title != "Workloads, worst first" {
			continue
		}
		order := p.Transformations[1]["options"].(object)
		state := p.Targets[0].Expr
		if p.Options["sortBy"].([]object)[0]["displayName"] != "state" || order["renameByName"].(object)["Value #A"] != "state" || order["indexByName"].(object)["Value #A"] != 0 {
			t.Errorf("want the state first, and rows sorted by it; got %v, %v", p.Options["sortBy"], order)
		}
		if !strings.HasPrefix(state, "5 * "+gone) || !strings.Contains(state, "or 2 * group "+byWorkload+" ("+heldBack+" > 0)") || !strings.HasSuffix(state, "or 0 * group "+byWorkload+" ("+dueNow+")") {
			t.Errorf("want what is gone above all, and what is held back above what is well; got %s", state)
		}
		return
	}
	t.Error("want a table of workloads, got none")
}
