package owner

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/prometheus/prometheus/promql/parser"
)

// instances says of PromQL expressions whether each series of their result has the label instance.
type instances struct {
	promQL   parser.Parser
	recorded map[string][]string // the expressions of each recorded series
	found    map[string]bool     // of recorded series
}

// keeps is an error where it cannot tell, or where only some of the series would have the label.
func (i instances) keeps(expr string) (bool, error) {
	e, err := i.promQL.ParseExpr(expr)
	if err != nil {
		return false, err
	}
	return i.of(e)
}

func (i instances) of(e parser.Expr) (bool, error) {
	if e.Type() == parser.ValueTypeScalar {
		return false, nil
	}
	switch e := e.(type) {
	case *parser.VectorSelector:
		return i.series(e.Name)
	case *parser.MatrixSelector:
		return i.of(e.VectorSelector)
	case *parser.SubqueryExpr:
		return i.of(e.Expr)
	case *parser.ParenExpr:
		return i.of(e.Expr)
	case *parser.UnaryExpr:
		return i.of(e.Expr)
	case *parser.AggregateExpr:
		of, err := i.of(e.Expr)
		if e.Op == parser.TOPK || e.Op == parser.BOTTOMK || e.Op == parser.LIMITK || e.Op == parser.LIMIT_RATIO {
			return of, err // they choose series and keep all labels
		}
		return of && slices.Contains(e.Grouping, "instance") != e.Without, err
	case *parser.BinaryExpr:
		return i.binary(e)
	case *parser.Call:
		return i.call(e)
	}
	return false, fmt.Errorf("%s: want an expression of series, got %T", e, e)
}

// series reports whether a series has the label. A scraped series has it. A recorded series has it if all its rules keep it. A rule may read
// its own series, so no and then yes are assumed, and the one that the rules confirm is the answer.
func (i instances) series(name string) (bool, error) {
	rules := i.recorded[name]
	if len(rules) == 0 {
		return true, nil
	}
	if keeps, ok := i.found[name]; ok {
		return keeps, nil
	}
	var errs []error
	for _, keeps := range []bool{false, true} {
		supposed := instances{i.promQL, i.recorded, maps.Clone(i.found)}
		supposed.found[name] = keeps
		err := supposed.all(rules, keeps)
		if err == nil {
			maps.Copy(i.found, supposed.found)
			return keeps, nil
		}
		errs = append(errs, err)
	}
	return false, fmt.Errorf("%s: %w", name, errors.Join(errs...))
}

func (i instances) all(rules []string, want bool) error {
	for _, expr := range rules {
		got, err := i.keeps(expr)
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("want that each series keeps instance: %v, got %v", want, got)
		}
	}
	return nil
}

func (i instances) call(e *parser.Call) (bool, error) {
	switch e.Func.Name {
	case "absent", "absent_over_time", "vector":
		return false, fmt.Errorf("%s: want a function that keeps the labels of its series, got %s", e, e.Func.Name)
	case "label_replace", "label_join":
		if to, ok := e.Args[1].(*parser.StringLiteral); !ok || to.Val == "instance" {
			return false, fmt.Errorf("%s: want another label written than instance", e)
		}
	}
	for _, argument := range e.Args {
		if t := argument.Type(); t == parser.ValueTypeVector || t == parser.ValueTypeMatrix {
			return i.of(argument)
		}
	}
	return false, fmt.Errorf("%s: want an argument that is a series", e)
}

// binary follows Prometheus: set operators return the series of a side; between two vectors a one-to-one match returns the labels that
// were matched, and a group_left or group_right those of the side that may have more series.
func (i instances) binary(e *parser.BinaryExpr) (bool, error) {
	left, err := i.of(e.LHS)
	if err != nil {
		return false, err
	}
	right, err := i.of(e.RHS)
	if err != nil {
		return false, err
	}
	switch {
	case e.LHS.Type() == parser.ValueTypeScalar:
		return right, nil
	case e.RHS.Type() == parser.ValueTypeScalar, e.Op == parser.LAND, e.Op == parser.LUNLESS:
		return left, nil
	case e.Op == parser.LOR:
		if left != right {
			return false, fmt.Errorf("%s: want both sides to keep instance or none", e)
		}
		return left, nil
	}
	m := e.VectorMatching
	matched := slices.Contains(m.MatchingLabels, "instance") == m.On
	switch m.Card {
	case parser.CardManyToOne:
		return left || right && slices.Contains(m.Include, "instance"), nil
	case parser.CardOneToMany:
		return right || left && slices.Contains(m.Include, "instance"), nil
	}
	return left && right && matched, nil
}
