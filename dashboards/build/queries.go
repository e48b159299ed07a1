package main

import (
	"fmt"
	"strings"
)

// here selects the chosen part of the fleet. Targets of one name in two clusters or namespaces are two targets.
const here = `cluster=~"$cluster",namespace=~"$namespace"`

// of selects the chosen workload. One workload of one target has few series, so its raw histograms may be queried.
// Queries over a fleet use recorded series (alerts/*.yaml).
const of = here + `,workload=~"$workload",target=~"$target",model=~"$model"`

// onTarget selects the target that was chosen: its engine and GPUs.
const onTarget = here + `,target=~"$target"`

// quantile is a quantile of a client's histogram. name is without "replayd_" and "_seconds". offset is empty or ends the
// selector.
func quantile(q float64, name, offset string) string {
	return quantileAt("$__rate_interval", q, name, offset)
}

// quantileOver uses a window of its own, as alerts do.
func quantileOver(window string, q float64, name string) string {
	return quantileAt(window, q, name, "")
}

func quantileAt(window string, q float64, name, offset string) string {
	return fmt.Sprintf(`histogram_quantile(%v, sum by (le) (rate(replayd_%s_seconds_bucket{%s}[%s]%s)))`, q, name, of, window, offset)
}

// sumOf and countOf are the sum and the count of a histogram in a window.
func sumOf(selector, name, window string) string { return ofHistogram("sum", selector, name, window) }

func countOf(selector, name, window string) string {
	return ofHistogram("count", selector, name, window)
}

func ofHistogram(what, selector, name, window string) string {
	return fmt.Sprintf(`sum(rate(replayd_%s_seconds_%s{%s}[%s]))`, name, what, selector, window)
}

// ownLateness is the mean lateness without lane wait, as in workload:replayd_own_lateness_seconds:mean5m.
func ownLateness(selector, window string) string {
	return `clamp_min(` + sumOf(selector, "lateness", window) + ` - ` + sumOf(selector, "lane_wait", window) + `, 0) / (` + countOf(selector, "lateness", window) + ` > 0)`
}

// quantiles are three quantiles of a client's histogram, and the earlier p90 at the same place of the trace.
func quantiles(name string) []query {
	return []query{
		{quantile(0.9, name, ago), "p90 before"},
		{quantile(0.5, name, ""), "p50"},
		{quantile(0.9, name, ""), "p90"},
		{quantile(0.99, name, ""), "p99"},
	}
}

// The colors of lines. Red is for bad values and for bounds.
const (
	blue   = "#5794F2"
	green  = "#73BF69"
	orange = "#FF9830"
	purple = "#B877D9"
	pale   = "rgba(160, 160, 160, 0.7)"
)

// quantileColors gives p50, p90 and p99 the same colors everywhere.
func (p *panel) quantileColors() *panel {
	return p.colored("^p50$", green).colored("^p90$", blue).colored("^p99$", purple)
}

// colored sets the color of the series whose displayed name matches.
func (p *panel) colored(pattern, color string) *panel {
	return p.override(pattern, "color", object{"mode": "fixed", "fixedColor": color})
}

// dashed draws the line of a bound.
func (p *panel) dashed(pattern, color string) *panel {
	return p.colored(pattern, color).override(pattern, "custom.lineStyle", object{"fill": "dash", "dash": []int{6, 6}}, "custom.fillOpacity", 0)
}

// ago ends a selector of the earlier place of the trace: see before.
const ago = " offset ${before}ms"

// compared returns a query and the same query at the earlier place of the trace. The earlier one comes first, so that
// its pale line (see paleBefore) is drawn below.
func compared(expr func(offset string) string, legend string) []query {
	return []query{{expr(ago), strings.TrimSpace(legend + " before")}, {expr(""), legend}}
}

// paleBefore draws the earlier series of compared queries as pale lines.
func (p *panel) paleBefore() *panel {
	return p.colored("/before$/", pale).override("/before$/", "custom.lineWidth", 2, "custom.fillOpacity", 0)
}

// slo is the configured bound as a line: "ttft", "tpot" or "e2e".
func slo(name string) query {
	return query{fmt.Sprintf(`max(replayd_slo_threshold_seconds{%s,slo="%s"})`, of, name), "SLO"}
}

// redSLO draws the line of slo.
func (p *panel) redSLO() *panel { return p.dashed("^SLO$", "red") }
