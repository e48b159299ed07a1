package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"replayd/internal/fault"
	"replayd/internal/measure"
	"replayd/internal/spelling"
)

// SLO holds the bounds that a good request keeps, and the share of eligible requests that should be good.
type SLO struct {
	Bounds    Bounds             `koanf:",remain"`
	Objective float64            `koanf:"objective"` // greater than 0 and less than 1
	Session   measure.SessionSLO `koanf:"session"`
}

// Bounds holds the other keys of an SLO: values by quantity name, in the format of measure.ParseBound; empty or 0 means
// no bound.
type Bounds map[string]any

// BoundsOf returns the bounds of an SLO.
func BoundsOf(s measure.SLO) Bounds {
	all := Bounds{}
	for _, b := range s {
		all[b.Quantity.String()] = b.Text(b.Limit)
	}
	return all
}

// Levels returns the SLO of a checked configuration.
func (b Bounds) Levels() measure.SLO { return b.check("", &fault.List{}) }

// check also rejects bounds on streaming quantities of a target without streaming: no request could exceed them.
func (s SLO) check(at string, t *Target, f *fault.List) {
	for _, b := range s.Bounds.check(at, f) {
		f.If(!t.Stream && b.Quantity.Streamed(),
			at+"."+b.Quantity.String(), "needs streamed answers, got %v", b.Text(b.Limit))
	}
	f.NotNegative(at+".session.makespan", s.Session.Makespan)
	o := s.Objective // with 1 there is no error budget
	f.If(!(o > 0 && o < 1), at+".objective", "want a number > 0 and < 1, got %v", o)
}

func keysOfSLO() []string {
	keys := []string{"objective", "session"}
	for _, q := range measure.Quantities() {
		keys = append(keys, q.String(), q.Tag())
	}
	return keys
}

// check returns the valid bounds in the order of the quantities.
func (b Bounds) check(at string, f *fault.List) (slo measure.SLO) {
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if _, known := measure.QuantityOf(name); !known {
			f.Add(at+"."+name, "%s%s: want objective, session or %s",
				unknownKey, spelling.DidYouMean(name, "", keysOfSLO()), measure.QuantityNames())
			continue
		}
		value := "0"
		switch v := b[name].(type) {
		case nil:
		case string, int, int64, uint64, float64, bool:
			value = cmp.Or(fmt.Sprint(v), value)
		default:
			f.Add(at+"."+name, "want one value")
			continue
		}
		switch bound, err := measure.ParseBound(name, value); {
		case err != nil:
			f.Add(at+"."+name, "%v", err)
		case slo.Limit(bound.Quantity) > 0 && bound.Limit > 0:
			f.Add(at+"."+name, "want %s once, got it under both of its names", bound.Quantity)
		case bound.Limit > 0:
			slo = append(slo, bound)
		}
	}
	return measure.NewSLO(slo...)
}
