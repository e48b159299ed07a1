//go:build real

package incidents_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A dashboard is what a query needs of Grafana's classic form.
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
	Target     *target // where newer versions have it
}

// all gives the panels, those of collapsed rows too.
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

// A view is a dashboard as somebody looks at it: a span of time, the variables that were chosen, and how often Prometheus
// scrapes, as its data source is set.
type view struct {
	from, to time.Time
	scrape   time.Duration
	values   map[string]string // how each variable stands in an expression
}

// points is about how many a panel has, of its width in pixels.
const points = 150

// intervals are Grafana's: of a panel with a least step, which is the scrape interval by default. $__rate_interval holds four
// scrapes (grafana.com/docs/grafana/latest/datasources/prometheus/template-variables).
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

// fill puts values in the place of variables.
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

// short is a duration in whole seconds, as PromQL takes it.
func short(d time.Duration) string { return strconv.FormatInt(int64(d.Seconds()), 10) + "s" }
