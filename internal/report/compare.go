package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"replayd/internal/measure"
)

// mostOverlaid is how many runs a picture can tell apart.
const mostOverlaid = 8

// methods says how intervals come about.
var methods = []string{
	"All are of 95 %. Means and rates: Student’s t of the means of 30 consecutive parts of a run, because requests that run side by side are not independent of each other; below 60 requests, of the requests.",
	"Percentiles: between two order statistics, by the binomial distribution. They take requests for independent; where neighbours are alike they are too narrow. Shares: Wilson.",
	"Differences: from the intervals of both runs, after Zou and Donner, Statistics in Medicine 27 (2008). A difference is shown where its interval leaves 0 out.",
	"None of them knows by how much one run differs from the next of the same kind. For that, repeat runs.",
}

// A compared figure is one of those by which runs are held against each other.
type comparedFigure struct {
	name, unit string
	larger     bool // is better
	of         func(l lookedAt) interval
}

func percentileOf(tag string, p float64) func(lookedAt) interval {
	return func(l lookedAt) interval { return percentileInterval(l.of(tag), p) }
}

func meanOfTag(tag string) func(lookedAt) interval {
	q, _ := quantityOf(tag)
	return func(l lookedAt) interval {
		mean, half := batchMean(l.valuesOf(q.value))
		if l.of(tag).N() == 0 {
			mean = math.NaN()
		}
		return around(mean, half)
	}
}

// around is an interval by half its width; an unknown half bounds nothing.
func around(value, half float64) interval {
	if math.IsNaN(half) {
		half = math.Inf(1)
	}
	return interval{value, value - half, value + half}
}

var comparedFigures = []comparedFigure{
	{"Requests, ok", "requests/s", true, func(l lookedAt) interval { return l.rate(func(Row) float64 { return 1 }, "request_throughput") }},
	{"Output", "tokens/s", true, func(l lookedAt) interval {
		return l.rate(func(r Row) float64 { return float64(r.Output) }, "output_token_throughput")
	}},
	{"Output per user, mean", "tokens/s", true, meanOfTag("output_token_throughput_per_user")},
	{"TTFT mean", "ms", false, meanOfTag("time_to_first_token")},
	{"TTFT p50", "ms", false, percentileOf("time_to_first_token", 50)},
	{"TTFT p90", "ms", false, percentileOf("time_to_first_token", 90)},
	{"TTFT p99", "ms", false, percentileOf("time_to_first_token", 99)},
	{"ITL mean", "ms", false, meanOfTag("inter_token_latency")},
	{"ITL p50", "ms", false, percentileOf("inter_token_latency", 50)},
	{"ITL p99", "ms", false, percentileOf("inter_token_latency", 99)},
	{"Latency mean", "ms", false, meanOfTag("request_latency")},
	{"Latency p50", "ms", false, percentileOf("request_latency", 50)},
	{"Latency p99", "ms", false, percentileOf("request_latency", 99)},
	{"Failed", "%", false, func(l lookedAt) interval {
		in := shareInterval(l.figures.Failed, len(l.rows))
		return interval{100 * in.Value, 100 * in.Low, 100 * in.High}
	}},
	{"Lateness p99", "ms", false, func(l lookedAt) interval { return percentileInterval(l.late(), 99) }},
}

// rate is a figure of ok requests per second, with an interval from parts of equal time.
func (l lookedAt) rate(amount func(Row) float64, tag string) interval {
	value := l.single(tag)
	span := l.figures.Seconds()
	if len(l.ok) < 2*batches || span <= 0 || math.IsNaN(value) {
		return around(value, math.NaN())
	}
	parts := make([]float64, batches)
	for _, r := range l.ok {
		at := float64(r.End-l.figures.Start) / 1e9 / span
		parts[min(batches-1, max(0, int(at*batches)))] += amount(r) * batches / span
	}
	_, half := batchMean(parts)
	return around(value, half)
}

// comparison is the page of several runs.
func comparison(runs []Run) Page {
	p := Page{Title: fmt.Sprintf("%d runs side by side", len(runs))}
	var all []lookedAt
	for _, r := range runs {
		l := look(r)
		for _, w := range warnings(r) {
			p.Warnings = append(p.Warnings, l.name()+": "+w)
		}
		if len(l.rows) == 0 {
			p.Warnings = append(p.Warnings, l.name()+": there is no request in this run")
			continue
		}
		all = append(all, l)
	}
	sortRuns(all)
	if len(all) == 0 {
		p.Lead = "There is no request in any of these runs."
		return p
	}
	var points []ParetoPoint
	for _, l := range all {
		points = append(points, l.pareto())
	}
	if _, text := Knee(points); text != "" {
		p.Lead = upper(text) + "."
	} else if len(all) > 1 {
		p.Lead = headline(all[0], all[1])
	}
	if s := tradeOff(all); s.Title != "" {
		p.Sections = append(p.Sections, s)
	}
	p.Sections = append(p.Sections, sideBySide(all))
	if len(all) > 1 {
		p.Sections = append(p.Sections, differences(all))
	}
	p.Sections = append(p.Sections, overlaid(all), whatWasRun(all), Section{Title: "How the intervals come about", Short: "Method", Text: methods})
	if len(all) == 2 { // who holds two runs against each other looks for the differences first
		slices.SortStableFunc(p.Sections, func(a, b Section) int { return cmp.Compare(order(a), order(b)) })
	}
	return p
}

// order puts what says most about two runs first.
func order(s Section) int {
	return slices.Index([]string{"Differences", "Side by side", "Distributions", "Trade-off", "What was run", "Method"}, cmp.Or(s.Short, s.Title))
}

// sortRuns puts runs in the order of their concurrency, where each has its own; else they stay as they were named.
func sortRuns(all []lookedAt) {
	seen := map[int]bool{}
	for _, l := range all {
		c := l.Settings.Concurrency
		if c == 0 || seen[c] {
			return
		}
		seen[c] = true
	}
	slices.SortStableFunc(all, func(a, b lookedAt) int { return cmp.Compare(a.Settings.Concurrency, b.Settings.Concurrency) })
}

// headline holds a run against the first in one sentence.
func headline(a, b lookedAt) string {
	var parts []string
	for _, f := range comparedFigures {
		if f.name != "Output" && f.name != "TTFT p50" && f.name != "TTFT p99" && f.name != "Latency p50" {
			continue
		}
		x, y := f.of(a), f.of(b)
		if change := y.Value/x.Value - 1; !math.IsNaN(change) && difference(y, x).apart() {
			parts = append(parts, fmt.Sprintf("%s %s", f.name, signed(100*change, "%")))
		}
	}
	if len(parts) == 0 {
		return fmt.Sprintf("%s against %s: no difference is shown in output, TTFT or latency.", b.name(), a.name())
	}
	return fmt.Sprintf("%s against %s: %s.", b.name(), a.name(), strings.Join(parts, ", "))
}

// signed is a value with its sign.
func signed(v float64, unit string) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	switch {
	case v < 0:
		return "−" + Value(-v, unit)
	case v > 0:
		return "+" + Value(v, unit)
	}
	return Value(0, unit)
}

// withInterval writes a figure and its interval, without their unit: 212 (208 to 217).
func withInterval(in interval) string {
	switch {
	case math.IsNaN(in.Value):
		return "–"
	case math.IsInf(in.Low, 0) && math.IsInf(in.High, 0):
		return short(in.Value)
	case math.IsInf(in.High, 0):
		return fmt.Sprintf("%s (%s and more)", short(in.Value), short(in.Low))
	case math.IsInf(in.Low, 0):
		return fmt.Sprintf("%s (up to %s)", short(in.Value), short(in.High))
	}
	return fmt.Sprintf("%s (%s to %s)", short(in.Value), short(in.Low), short(in.High))
}

func sideBySide(all []lookedAt) Section {
	t := PageTable{Columns: []Column{{Name: "figure", Text: true}, {Name: "unit", Text: true}}}
	counts := []string{"Requests sent", "requests"}
	for _, l := range all {
		t.Columns = append(t.Columns, Column{Name: l.name()})
		counts = append(counts, thousands(float64(len(l.rows)), 0))
	}
	t.Rows = append(t.Rows, counts)
	for _, f := range comparedFigures {
		cells, known := []string{f.name, f.unit}, false
		for _, l := range all {
			in := f.of(l)
			known = known || !math.IsNaN(in.Value)
			cells = append(cells, withInterval(in))
		}
		if known {
			t.Rows = append(t.Rows, cells)
		}
	}
	return Section{Title: "Side by side", Text: []string{"In brackets: intervals of 95 %, made as said under Method."}, Tables: []PageTable{t}}
}

// differences holds each run against the first.
func differences(all []lookedAt) Section {
	base := all[0]
	s := Section{Title: "Differences to " + base.name(), Short: "Differences"}
	forest := Plot{
		Title: "Differences in percent, with 95 % intervals", X: Axis{Label: "difference to " + base.name(), Unit: "%"}, Y: Axis{}, Wide: true,
		Note: "Right of 0: more than " + base.name() + ". An interval that reaches over 0 shows no difference.",
	}
	for _, other := range all[1:] {
		t := PageTable{Title: other.name() + " against " + base.name(), Folded: len(all) > 2, Columns: []Column{
			{Name: "figure", Text: true}, {Name: base.name()}, {Name: other.name()}, {Name: "difference"}, {Name: "95 % interval"}, {Name: "in percent"}, {Text: true},
		}}
		points := Series{Kind: Points}
		for _, f := range comparedFigures {
			a, b := f.of(base), f.of(other)
			if math.IsNaN(a.Value) || math.IsNaN(b.Value) {
				continue
			}
			d := difference(b, a)
			bounds := "–"
			if !math.IsInf(d.Low, 0) && !math.IsInf(d.High, 0) {
				bounds = signed(d.Low, f.unit) + " to " + signed(d.High, f.unit)
			}
			share := "–"
			if a.Value != 0 {
				share = signed(100*d.Value/a.Value, "%")
			}
			t.Rows = append(t.Rows, []string{f.name, Value(a.Value, f.unit), Value(b.Value, f.unit), signed(d.Value, f.unit), bounds, share, verdict(f, d)})
			if a.Value > 0 && f.unit != "%" && f.name != "Lateness p99" && !math.IsInf(d.Low, 0) && !math.IsInf(d.High, 0) {
				forest.Y.Names = append([]string{f.name}, forest.Y.Names...) // the first at the top
				points.X, points.Y = append(points.X, 100*d.Value/a.Value), append([]float64{float64(len(points.Y))}, points.Y...)
				points.Low, points.High = append(points.Low, 100*d.Low/a.Value), append(points.High, 100*d.High/a.Value)
			}
		}
		s.Tables = append(s.Tables, t)
		forest.Series = []Series{points}
	}
	if len(forest.Y.Names) > 0 && len(all) == 2 {
		forest.Marks = []Mark{{Name: "no difference", At: 0, X: true}}
		forest.Table = &s.Tables[0]
		s.Plots = []Plot{forest}
	}
	return s
}

// verdict says what an interval shows.
func verdict(f comparedFigure, d interval) string {
	switch {
	case !d.apart():
		return "no difference shown"
	case (d.Value > 0) == f.larger:
		return "better"
	}
	return "worse"
}

// overlaid are the distributions of several runs in one picture.
func overlaid(all []lookedAt) Section {
	s := Section{Title: "Distributions of all runs", Short: "Distributions"}
	shown := all[:min(len(all), mostOverlaid)]
	if len(all) > len(shown) {
		s.Text = append(s.Text, fmt.Sprintf("The first %d of %d runs, so that their lines can be told apart.", len(shown), len(all)))
	}
	for _, q := range shownQuantities {
		var sets []Series
		least, most := -1, -1
		wide := false
		for i, l := range shown {
			d := l.of(q.tag)
			if d.N() == 0 {
				continue
			}
			sets = append(sets, Series{Name: l.name(), Y: d.Values})
			wide = wide || d.wide()
			if least < 0 || d.Percentile(50) < shown[least].of(q.tag).Percentile(50) {
				least = i
			}
			if most < 0 || d.Percentile(50) > shown[most].of(q.tag).Percentile(50) {
				most = i
			}
		}
		if len(sets) == 0 {
			continue
		}
		low, high := shown[least].of(q.tag).Percentile(50), shown[most].of(q.tag).Percentile(50)
		title := fmt.Sprintf("%s p50: from %s (%s) to %s (%s)", upper(q.short), Value(low, "ms"), shown[least].name(), Value(high, "ms"), shown[most].name())
		wide = wide || high > 5*low && low > 0
		s.Plots = append(s.Plots, ECDF(title, Axis{Label: q.long, Unit: "ms", Log: wide}, sets...))
	}
	return s
}

// whatWasRun is what the runs were told.
func whatWasRun(all []lookedAt) Section {
	t := PageTable{Columns: []Column{{Name: "run", Text: true}, {Name: "concurrency"}, {Name: "rate"}, {Name: "GPUs"}, {Name: "ok"}, {Name: "failed"}, {Name: "length"}, {Name: "model", Text: true}, {Name: "command", Text: true}}}
	number := func(n int) string {
		if n == 0 {
			return "–"
		}
		return thousands(float64(n), 0)
	}
	for _, l := range all {
		rate := "–"
		if l.Settings.Rate > 0 {
			rate = Value(l.Settings.Rate, "requests/s")
		}
		ok := 0
		for _, r := range l.rows {
			if r.Outcome == measure.OK {
				ok++
			}
		}
		t.Rows = append(t.Rows, []string{
			l.name(), number(l.Settings.Concurrency), rate, number(l.Settings.GPUs), thousands(float64(ok), 0), thousands(float64(l.figures.Failed), 0),
			Value(l.seconds, "s"), l.Settings.Model, l.Settings.Command,
		})
	}
	return Section{Title: "What was run", Tables: []PageTable{t}}
}
