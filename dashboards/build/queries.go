package main

import (
	"fmt"
	"strings"
)

// here selects the part of the fleet that was chosen: two targets of one name in two clusters or namespaces are two.
const here = `cluster=~"$cluster",namespace=~"$namespace"`

// of selects the workload that was chosen. One workload of one target has few series, so its raw histograms may be asked for: what
// spans a fleet asks recorded series (alerts/*.yaml).
const of = here + `,workload=~"$workload",target=~"$target",model=~"$model"`

// onTarget selects the target that was chosen: its engine and GPUs.
const onTarget = here + `,target=~"$target"`

// quantile is one of a client's histogram, native or classic as the variable kind says: name is without "replayd_" and "_seconds".
// Offset is empty or ends the selector.
func quantile(q float64, name, offset string) string {
	return quantileAt("$__rate_interval", q, name, offset)
}

// quantileOver is of a window of its own, such as alerts have.
func quantileOver(window string, q float64, name string) string {
	return quantileAt(window, q, name, "")
}

func quantileAt(window string, q float64, name, offset string) string {
	return fmt.Sprintf(`histogram_quantile(%v, sum by (le) (rate(replayd_%s_${kind}{%s}[%s]%s)))`, q, name, of, window, offset)
}

// sumOf and countOf are of a histogram's samples in a window, of whichever kind it is.
func sumOf(selector, name, window string) string { return ofHistogram("sum", selector, name, window) }

func countOf(selector, name, window string) string {
	return ofHistogram("count", selector, name, window)
}

func ofHistogram(what, selector, name, window string) string {
	return fmt.Sprintf(`(sum(histogram_%[1]s(rate(replayd_%[3]s_seconds{%[2]s}[%[4]s]))) or sum(rate(replayd_%[3]s_seconds_%[1]s{%[2]s}[%[4]s])))`, what, selector, name, window)
}

// ownLateness is the mean of what replayd was late by for other reasons than want of a lane, as in workload:replayd_own_lateness_seconds:mean5m.
func ownLateness(selector, window string) string {
	return `clamp_min(` + sumOf(selector, "lateness", window) + ` - ` + sumOf(selector, "lane_wait", window) + `, 0) / (` + countOf(selector, "lateness", window) + ` > 0)`
}

// quantiles are three of a client's histogram, over the middle one at the place of the trace before.
func quantiles(name string) []query {
	return []query{
		{quantile(0.9, name, ago), "p90 before"},
		{quantile(0.5, name, ""), "p50"},
		{quantile(0.9, name, ""), "p90"},
		{quantile(0.99, name, ""), "p99"},
	}
}

// The colours of lines. Red is for what is bad, and for bounds.
const (
	blue   = "#5794F2"
	green  = "#73BF69"
	orange = "#FF9830"
	purple = "#B877D9"
	pale   = "rgba(160, 160, 160, 0.7)"
)

// quantileColors gives p50, p90 and p99 the same colour wherever they are drawn.
func (p *panel) quantileColors() *panel {
	return p.colored("^p50$", green).colored("^p90$", blue).colored("^p99$", purple)
}

// colored draws the series whose displayed name matches in a colour.
func (p *panel) colored(pattern, color string) *panel {
	return p.override(pattern, "color", object{"mode": "fixed", "fixedColor": color})
}

// dashed draws a line that is a bound.
func (p *panel) dashed(pattern, color string) *panel {
	return p.colored(pattern, color).override(pattern, "custom.lineStyle", object{"fill": "dash", "dash": []int{6, 6}}, "custom.fillOpacity", 0)
}

// ago ends a selector that is of the place of the trace before: see before.
const ago = " offset ${before}ms"

// compared gives a query and the same at the place of the trace before, which is drawn pale (see paleBefore), and under it for that.
func compared(expr func(offset string) string, legend string) []query {
	return []query{{expr(ago), strings.TrimSpace(legend + " before")}, {expr(""), legend}}
}

// paleBefore draws the series of compared queries from before as pale lines.
func (p *panel) paleBefore() *panel {
	return p.colored("/before$/", pale).override("/before$/", "custom.lineWidth", 2, "custom.fillOpacity", 0)
}

// slo is the configured bound as a line of its own: "ttft", "tpot" or "e2e".
func slo(name string) query {
	return query{fmt.Sprintf(`max(replayd_slo_threshold_seconds{%s,slo="%s"})`, of, name), "SLO"}
}

// redSLO draws the line of slo.
func (p *panel) redSLO() *panel { return p.dashed("^SLO$", "red") }
