package main

import (
	"path"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

// What is between router and engines is the difference of the two means that are drawn, over the same interval. Neither
// has a value in place of a missing one, so without one of them nothing is between. No other panel reads the router.
func TestBetweenRouterAndEngines(t *testing.T) {
	drawn := map[string]string{}
	for _, p := range correlation().all() {
		for _, q := range p.Targets {
			if p.Title == "TTFT: client, router and engines" {
				drawn[q.LegendFormat] = filled(q.Expr)
			}
		}
	}
	parse := func(legend string) parser.Expr {
		e, err := parser.NewParser(parser.Options{}).ParseExpr(drawn[legend])
		if err != nil {
			t.Fatalf("%s: %v", legend, err)
		}
		return e
	}
	difference, ok := parse("between").(*parser.BinaryExpr)
	if !ok || difference.Op != parser.SUB || difference.LHS.String() != parse("router").String() || difference.RHS.String() != parse("engines").String() {
		t.Errorf("want the router's mean less the engines', got %s", drawn["between"])
	}
	if strings.Contains(drawn["between"], "vector(") || always(difference) {
		t.Errorf("want nothing without one of the two, got %s", drawn["between"])
	}
	for name, b := range boards() {
		for where, expr := range expressions(t, b) {
			if path.Base(name) != "correlation.json" && strings.Contains(expr, "replayd_router_") {
				t.Errorf("%s: %s: want the router's figures on Correlation alone", name, where)
			}
		}
	}
}
