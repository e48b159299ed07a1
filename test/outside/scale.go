package outside

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// ScaleRules returns the rules of a file with every duration divided by a factor: ranges, offsets and steps of
// subqueries in the expressions, and interval, query_offset, for and keep_firing_for. So a test sees in a minute what
// takes an hour. Texts of annotations and numbers of seconds in an expression stay unchanged.
//
// The error holds every fault: an expression that Prometheus' parser refuses, an
// instant (@), which cannot be scaled, a duration that is then not a whole number of
// milliseconds, and an unknown key of a group or a rule, which could be a duration.
func ScaleRules(path string, factor int64) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := scaler{path: path, factor: factor}
	var file yaml.Node
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if file.Kind == 0 {
		return nil, fmt.Errorf("%s: want groups of rules, got nothing", path)
	}
	s.section(file.Content[0], map[string]func(*yaml.Node){"groups": s.each(s.group)})
	if len(s.faults) > 0 {
		return nil, errors.Join(s.faults...)
	}
	return yaml.Marshal(&file)
}

type scaler struct {
	path   string
	factor int64
	faults []error
}

func (s *scaler) fault(n *yaml.Node, format string, args ...any) {
	s.faults = append(s.faults, fmt.Errorf("%s:%d: %w", s.path, n.Line, fmt.Errorf(format, args...)))
}

// section passes each value to its function; nil: the value stays.
func (s *scaler) section(n *yaml.Node, known map[string]func(*yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		s.fault(n, "want keys and values")
		return
	}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		change, ok := known[key.Value]
		switch {
		case !ok:
			s.fault(key, "want a key of a file of rules, got %q", key.Value)
		case change != nil:
			change(value)
		}
	}
}

func (s *scaler) each(f func(*yaml.Node)) func(*yaml.Node) {
	return func(list *yaml.Node) {
		if list.Kind != yaml.SequenceNode {
			s.fault(list, "want a list")
		}
		for _, n := range list.Content {
			f(n)
		}
	}
}

func (s *scaler) group(n *yaml.Node) {
	s.section(n, map[string]func(*yaml.Node){
		"name": nil, "limit": nil, "labels": nil, "interval": s.duration, "query_offset": s.duration, "rules": s.each(s.rule),
	})
}

func (s *scaler) rule(n *yaml.Node) {
	s.section(n, map[string]func(*yaml.Node){
		"record": nil, "alert": nil, "labels": nil, "annotations": nil, "expr": s.expression, "for": s.duration, "keep_firing_for": s.duration,
	})
}

func (s *scaler) duration(n *yaml.Node) {
	d, err := model.ParseDuration(n.Value)
	if err == nil {
		err = s.divide((*time.Duration)(&d))
	}
	if err != nil {
		s.fault(n, "%w", err)
		return
	}
	n.Value, n.Style = d.String(), 0
}

// expression divides the durations of a PromQL expression.
func (s *scaler) expression(at *yaml.Node) {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(at.Value)
	if err != nil {
		s.fault(at, "%w", err)
		return
	}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		var durations []*time.Duration
		var instant bool
		switch n := n.(type) {
		case *parser.VectorSelector:
			durations, instant = []*time.Duration{&n.OriginalOffset}, n.Timestamp != nil
		case *parser.MatrixSelector:
			durations = []*time.Duration{&n.Range}
		case *parser.SubqueryExpr:
			durations, instant = []*time.Duration{&n.Range, &n.Step, &n.OriginalOffset}, n.Timestamp != nil
		}
		for _, d := range durations {
			if err := s.divide(d); err != nil {
				s.fault(at, "%s: %w", n, err)
			}
		}
		if instant {
			s.fault(at, "%s: want no instant: it does not scale", n)
		}
		return nil
	})
	at.Value, at.Style = expr.String(), yaml.LiteralStyle
}

// divide divides a duration. Prometheus' durations are whole milliseconds.
func (s *scaler) divide(d *time.Duration) error {
	if *d%time.Duration(s.factor*int64(time.Millisecond)) != 0 {
		return fmt.Errorf("want a duration that %d divides into whole milliseconds, got %v", s.factor, model.Duration(*d))
	}
	*d /= time.Duration(s.factor)
	return nil
}
