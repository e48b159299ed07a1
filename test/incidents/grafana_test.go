//go:build real

package incidents_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A dashboard is the part of Grafana's classic form that a query needs.
type dashboard struct {
	Panels      []panel
	Templating  struct{ List []variable }
	Annotations struct{ List []annotation }
}

type panel struct {
	Title, Type string
	Interval    string // least step
	Targets     []target
	Panels      []panel // of a collapsed row
}

type target struct {
	Expr, RefID    string
	Instant, Range bool
}

type annotation struct {
	Name, Expr string
	Target     *target // in newer versions
}

// all returns the panels, including those of collapsed rows.
func (d *dashboard) all() (panels []panel) {
	var add func([]panel)
	add = func(list []panel) {
		for _, p := range list {
			if p.Type != "row" {
				panels = append(panels, p)
			}
			add(p.Panels)
		}
	}
	add(d.Panels)
	return panels
}

// A view is a dashboard as a person looks at it: a time range, the
// chosen variables, and the scrape interval of the data source.
type view struct {
	from, to time.Time
	scrape   time.Duration
	values   map[string]string // the text of each variable in an expression
}

// points is about the number of points of a panel, by its width in pixels.
const points = 150

// intervals returns Grafana's intervals for a panel with a minimum step, by default the scrape interval.
// $__rate_interval is four scrapes long (grafana.com/docs/grafana/latest/datasources/prometheus/template-variables).
func (v view) intervals(least string) (step, rate time.Duration, err error) {
	shortest := v.scrape
	if least != "" {
		if shortest, err = time.ParseDuration(strings.TrimPrefix(least, ">")); err != nil {
			return 0, 0, err
		}
	}
	step = max(v.to.Sub(v.from)/points, shortest).Round(time.Second)
	return step, max(step+v.scrape, 4*v.scrape), nil
}

var variables = regexp.MustCompile(`\$(\w+)|\$\{(\w+)(?::(\w+))?\}|\[\[(\w+)\]\]`)

// fill replaces variables by their values.
func (v view) fill(expr, least string) (filled string, step time.Duration, err error) {
	step, rate, err := v.intervals(least)
	if err != nil {
		return "", 0, err
	}
	whole := v.to.Sub(v.from)
	own := map[string]string{
		"__interval": short(step), "__interval_ms": strconv.FormatInt(step.Milliseconds(), 10), "__rate_interval": short(rate),
		"__range": short(whole), "__range_s": strconv.FormatInt(int64(whole.Seconds()), 10), "__range_ms": strconv.FormatInt(whole.Milliseconds(), 10),
	}
	filled = variables.ReplaceAllStringFunc(expr, func(found string) string {
		m := variables.FindStringSubmatch(found)
		name := m[1] + m[2] + m[4]
		value, ok := own[name]
		if !ok {
			value, ok = v.values[name]
		}
		if !ok || m[3] != "" && m[3] != "raw" {
			err = fmt.Errorf("%s: want a variable of the dashboard, as it is or raw", found)
		}
		return value
	})
	return filled, step, err
}

// short formats a duration in whole seconds for PromQL.
func short(d time.Duration) string { return strconv.FormatInt(int64(d.Seconds()), 10) + "s" }
