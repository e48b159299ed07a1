package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"replayd/internal/chart"
	"replayd/internal/number"
	"replayd/internal/result"
	"replayd/internal/stats"
)

// maxOverlaid is the most runs drawn in one plot; more lines could not be told apart.
const maxOverlaid = 8

var methods = []string{
	"Evidence: each run is cut into up to 30 blocks of equal time, because requests that share a queue depend on each other. No block is shorter than the run’s mean latency. Neighboring blocks that are alike count as fewer. A run that is shorter than 12 mean latencies is too short to judge.",
	"Side by side: intervals of 95 %. Means and rates: Student’s t over the blocks. Percentiles: Woodruff (1952), from the share of requests up to the percentile. Shares: Wilson.",
	"Differences: each block of a run is held against the block at the same place of the other run, so a burst that both runs met is no error. All figures on the page are one family, by Holm’s procedure: where runs are equal, the chance of any “better” or “worse” is held at 5 %. The interval of a figure has the level at which Holm’s procedure judged that figure, so it leaves out 0 exactly where there is a verdict.",
	"Row by row: rows that two runs of one trace have in common are held against each other, each with itself. The figure is " +
		"the geometric mean over the rows that ended ok in both, in blocks of the time in which the first run sent the row. " +
		"Rows are paired if at least half of each run’s rows have a partner.",
	"Two runs do not show how much one run differs from the next of the same kind, or what traffic does that changes more slowly than the runs are long. For both, repeat runs.",
}

func comparison(runs []result.Run) Page {
	p := Page{Title: fmt.Sprintf("%d runs side by side", len(runs))}
	all := allOf(runs)
	p.Warnings = warningsOfAll(all)
	all = withRows(all)
	if len(all) == 0 {
		p.Lead = "There is no request in any of these runs."
		return p
	}
	each, by, family := judge(all)
	for i, l := range all[1:] {
		p.Pairs = append(p.Pairs, pairsText(all[0], l, by[i]))
	}
	var points []ParetoPoint
	for _, l := range all {
		points = append(points, l.pareto())
	}
	if _, text := Knee(points); text != "" {
		p.Lead = upper(text) + "."
	} else if len(all) > 1 {
		p.Lead = headline(all[0], all[1], each[0])
	}
	p.Add(tradeOff(points), sideBySide(all))
	if len(all) > 1 {
		p.Add(differences(all, each, family, p.Pairs))
	}
	p.Add(overlaid(all), whatWasRun(all), Section{Title: "How the intervals come about", Short: "Method", Text: methods})
	if len(all) == 2 { // a reader who compares two runs looks for the differences first
		slices.SortStableFunc(p.Sections, func(a, b Section) int { return cmp.Compare(order(a), order(b)) })
	}
	return p
}

func allOf(runs []result.Run) []runData {
	all := make([]runData, len(runs))
	for i, r := range runs {
		all[i] = newRunData(r)
	}
	sortRuns(all)
	return all
}

func withRows(all []runData) []runData {
	return slices.DeleteFunc(all, func(l runData) bool { return len(l.rows) == 0 })
}

// warningsOfAll lists the warnings of several runs. Runs with the same warning share a line.
func warningsOfAll(all []runData) []string {
	var shared SharedTexts
	for _, l := range all {
		own := warnings(l.Run)
		if text := beyondPlan(l.Run); text != "" && !l.Picked {
			own = append(own, text)
		}
		if len(l.rows) == 0 {
			own = append(own, "there is no request in this run")
		}
		for _, text := range own {
			shared.Add(l.name(), text)
		}
	}
	return shared.Lines()
}

// order ranks the sections of a page of two runs, the most telling first.
func order(s Section) int {
	return slices.Index([]string{"Differences", "Side by side", "Distributions", "Trade-off", "What was run", "Method"}, cmp.Or(s.Short, s.Title))
}

// sortRuns sorts runs by concurrency if each run has a different one. Otherwise it keeps the order given.
func sortRuns(all []runData) {
	byConcurrency := func(a, b runData) int { return cmp.Compare(a.Settings.Concurrency, b.Settings.Concurrency) }
	sorted := slices.SortedStableFunc(slices.Values(all), byConcurrency)
	for i, l := range sorted {
		if l.Settings.Concurrency == 0 || i > 0 && byConcurrency(sorted[i-1], l) == 0 {
			return
		}
	}
	copy(all, sorted)
}

func headline(a, b runData, all []judgment) string {
	var parts []string
	judged := 0
	for _, j := range all {
		if j.judged() {
			judged++
		}
		if j.found && j.figure.headline {
			part := fmt.Sprintf("%s %s", j.figure.name, signed(100*(j.to.Value/j.from.Value-1), "%"))
			if j.from.Value == 0 {
				part = fmt.Sprintf("%s %s", j.figure.name, signed(j.to.Value, j.figure.differenceUnit()))
			}
			parts = append(parts, part)
		}
	}
	switch against := b.name() + " against " + a.name(); {
	case len(parts) > 0:
		return fmt.Sprintf("%s: %s.", against, strings.Join(parts, ", "))
	case judged == 0:
		short := b
		if a.blocks < fewestBlocks {
			short = a
		}
		return fmt.Sprintf("%s: too short to judge. %s: %s.", against, short.name(), short.unit())
	default:
		return fmt.Sprintf("%s: no difference is shown in output, TTFT, ITL, latency or failures.", against)
	}
}

// withInterval formats a figure and its interval without the unit: 212 (208 to 217).
func withInterval(in stats.Interval) string {
	switch {
	case math.IsNaN(in.Value):
		return "–"
	case math.IsInf(in.Low, 0) && math.IsInf(in.High, 0):
		return number.Short(in.Value)
	case math.IsInf(in.High, 0):
		return fmt.Sprintf("%s (%s and more)", number.Short(in.Value), number.Short(in.Low))
	case math.IsInf(in.Low, 0):
		return fmt.Sprintf("%s (up to %s)", number.Short(in.Value), number.Short(in.High))
	}
	return fmt.Sprintf("%s (%s to %s)", number.Short(in.Value), number.Short(in.Low), number.Short(in.High))
}

func sideBySide(all []runData) Section {
	t := chart.Table{Columns: chart.Columns("figure")}
	counts := []string{"Requests sent"}
	for _, l := range all {
		t.Columns = append(t.Columns, chart.Column{Name: l.name()})
		counts = append(counts, number.Whole(len(l.rows)))
	}
	t.Rows = append(append(t.Rows, counts), plannedRows(all)...)
	t.Rows = slices.DeleteFunc(t.Rows, func(row []string) bool {
		return !slices.ContainsFunc(row[1:], func(cell string) bool { return cell != "–" })
	})
	for _, f := range comparedFigures {
		cells, known := []string{fmt.Sprintf("%s (%s)", f.name, f.unit)}, false
		for _, l := range all {
			in := f.interval(l)
			known = known || !math.IsNaN(in.Value)
			cells = append(cells, withInterval(in))
		}
		if known {
			t.Rows = append(t.Rows, cells)
		}
	}
	return Section{Title: "Side by side", Text: []string{"In brackets: 95 % intervals, computed as described under Method."}, Tables: []chart.Table{t}}
}

func overlaid(all []runData) Section {
	s := Section{Title: "Distributions of all runs", Short: "Distributions"}
	shown := all[:min(len(all), maxOverlaid)]
	if len(all) > len(shown) {
		s.Text = append(s.Text, fmt.Sprintf("The first %d of %d runs, so that their lines can be told apart.", len(shown), len(all)))
	}
	for _, q := range shownQuantities {
		with := slices.DeleteFunc(slices.Clone(shown), func(l runData) bool { return l.of(q.Tag()).N() == 0 })
		if len(with) == 0 {
			continue
		}
		var sets []chart.Series
		for _, l := range with {
			sets = append(sets, chart.Series{Name: l.name(), Y: l.of(q.Tag()).Values})
		}
		median := func(l runData) float64 { return l.of(q.Tag()).Percentile(50) }
		byMedian := func(a, b runData) int { return cmp.Compare(median(a), median(b)) }
		least, most := slices.MinFunc(with, byMedian), slices.MaxFunc(with, byMedian)
		low, high := median(least), median(most)
		title := fmt.Sprintf("%s p50: %s in all runs", upper(q.short), number.Value(low, "ms"))
		if number.Value(low, "ms") != number.Value(high, "ms") {
			title = fmt.Sprintf("%s p50: from %s (%s) to %s (%s)", upper(q.short), number.Value(low, "ms"), least.name(), number.Value(high, "ms"), most.name())
		}
		x := chart.Axis{Label: q.long, Unit: "ms", Log: high > 5*low && low > 0}
		s.Plots = append(s.Plots, chart.ECDF(title, x, sets...))
	}
	return s
}

func whatWasRun(all []runData) Section {
	s := Section{Title: "What was run"}
	columns := chart.Columns("run", "concurrency", "rate", "GPUs", "ok", "failed", "duration", "<model", "<command")
	if one := all[0].Settings.Command; one != "" &&
		!slices.ContainsFunc(all, func(l runData) bool { return l.Settings.Command != one }) {
		columns = columns[:len(columns)-1]
		s.Text = []string{"All runs: " + one}
	}
	t := chart.Table{Columns: columns}
	known := func(n int) string {
		if n == 0 {
			return "–"
		}
		return number.Whole(n)
	}
	for _, l := range all {
		rate := "–"
		if l.Settings.Rate > 0 {
			rate = number.Value(l.Settings.Rate, "requests/s")
		}
		row := []string{
			l.name(), known(l.Settings.Concurrency), rate, known(l.Settings.GPUs), number.Whole(len(l.ok)), number.Whole(l.figures.Failed),
			number.Value(l.seconds, "s"), l.Settings.Model, l.Settings.Command,
		}
		t.Rows = append(t.Rows, row[:len(columns)])
	}
	s.Tables = []chart.Table{t}
	return s
}
