package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// A panel without a figure of the engine says which one the engine does not publish, where its page is read. The text
// in the place of a panel without any line is for no page.
func TestMissingFiguresOfAnEngineAreTold(t *testing.T) {
	promQL, told, router := parser.NewParser(parser.Options{}), 0, false
	for _, p := range correlation().all() {
		router = p.Type == "row" && strings.HasPrefix(p.Title, "Router") || router && p.Type != "row"
		var read []string
		var lack parser.Expr
		for _, q := range p.Targets {
			expr, err := promQL.ParseExpr(filled(q.Expr))
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(q.LegendFormat, "{{engine}} does not publish ") {
				lack = expr
				continue
			}
			for _, s := range parser.ExtractSelectors(expr) {
				read = append(read, labelOf(s, "__name__"))
			}
		}
		ofEngine := slices.ContainsFunc(read, func(name string) bool {
			return strings.HasPrefix(strings.TrimPrefix(name, "target:"), "replayd_engine_")
		})
		if router || !ofEngine {
			continue
		}
		unless, ok := lack.(*parser.BinaryExpr)
		if !ok || unless.Op != parser.LUNLESS {
			t.Errorf("%q: want it said what the engine does not publish, got %v", p.Title, lack)
			continue
		}
		told++
		for _, s := range parser.ExtractSelectors(unless.LHS) {
			if name := labelOf(s, "__name__"); name != "replayd_engine_info" {
				t.Errorf("%q: want the text where an engine is known, got %s", p.Title, name)
			}
		}
		for _, s := range parser.ExtractSelectors(unless.RHS) {
			name := strings.TrimSuffix(labelOf(s, "__name__"), "_count")
			short := strings.TrimSuffix(strings.TrimSuffix(name, "_total"), "s_tokens") // the recorded ratio of hits has neither
			if !slices.ContainsFunc(read, func(r string) bool { return strings.Contains(r, short) }) {
				t.Errorf("%q: want figures that the panel draws, got %s beside %q", p.Title, name, read)
			}
		}
	}
	if told < 8 {
		t.Errorf("want at least 8 panels with figures of the engine, got %d", told)
	}
}

func labelOf(s []*labels.Matcher, name string) string {
	for _, m := range s {
		if m.Name == name {
			return m.Value
		}
	}
	return ""
}

// The tokens of other clients are the engine's tokens less those of all of replayd's workloads on the target, for every
// choice of workload and model.
func TestOtherClientsAreNotReplaydsWorkloads(t *testing.T) {
	found := 0
	for _, p := range correlation().all() {
		for _, q := range p.Targets {
			if q.LegendFormat != "other clients" {
				continue
			}
			expr, err := parser.NewParser(parser.Options{}).ParseExpr(filled(q.Expr))
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range parser.ExtractSelectors(expr) {
				found++
				if labelOf(s, "workload")+labelOf(s, "model") != "" || labelOf(s, "target") == "" {
					t.Errorf("%q: want all of the target's workloads, got %v", p.Title, s)
				}
			}
		}
	}
	if found != 2 {
		t.Errorf("want the tokens of the engine and of replayd, got %d selectors", found)
	}
}
