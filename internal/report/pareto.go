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

// A ParetoPoint is the trade-off of one run: output per user against total output.
type ParetoPoint struct {
	Name        string
	Concurrency int     // 0: not a closed loop
	PerUser     float64 // Σ (output tokens − 1) ÷ Σ (last content − first content); NaN where nothing was streamed
	Total       float64 // output tokens/s
	Requests    float64 // ok requests/s
	Good        float64 // good requests/s; NaN without bounds
	GPUs        int     // 0: not known
	TTFT        float64 // mean, ms; NaN where nothing was streamed
	TTFT99      float64 // p99, ms
	Attainment  string  // good ÷ expected, in percent; "" without an SLO or a ledger

	user, output stats.Interval // intervals of PerUser and of Total (PerGPU in a plot)
	short        bool           // too short to judge: there are no intervals
}

// ParetoOf returns the point of a run.
func ParetoOf(run result.Run) ParetoPoint { return newRunData(run).pareto() }

func (l runData) pareto() ParetoPoint {
	user, output := perUser(l).Interval(tail), outputRate(l).Interval(tail)
	attainment := ""
	if l.Ledger != nil && len(l.Settings.SLO) > 0 {
		attainment = number.Percent(l.Ledger.Good, l.Ledger.Judged())
	}
	return ParetoPoint{
		TTFT99: l.of("time_to_first_token").Percentile(99), Attainment: attainment,
		Name: l.name(), Concurrency: l.Settings.Concurrency, GPUs: l.Settings.GPUs, user: user, output: output,
		PerUser: user.Value, Total: l.single("output_token_throughput"), TTFT: l.single("time_to_first_token"),
		Requests: l.single("request_throughput"), Good: l.single("goodput"), short: l.blocks < fewestBlocks,
	}
}

// PerGPU is Total / GPUs, or NaN if GPUs is not known.
func (p ParetoPoint) PerGPU() float64 {
	if p.GPUs < 1 {
		return math.NaN()
	}
	return p.Total / float64(p.GPUs)
}

func (p ParetoPoint) label() string {
	if p.Concurrency > 0 {
		return fmt.Sprintf("c=%d", p.Concurrency)
	}
	return p.Name
}

// kneeShare is the part of the highest throughput that the knee reaches.
const kneeShare = 0.95

// Knee returns the index of the run at the knee, beyond which more load brings no more throughput: the run of the
// lowest concurrency that reaches 95 % of the highest output tokens/s. Text describes the knee. At is −1 if output
// still rises at the highest concurrency, or if a run is too short to judge; text says so. At is −1 and text is "" if
// fewer than three different concurrencies have runs with tokens. The points may be in any order.
func Knee(points []ParetoPoint) (at int, text string) {
	var order []int
	for i, p := range points {
		if p.Concurrency > 0 && p.Total > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(points[a].Concurrency, points[b].Concurrency) })
	different := slices.CompactFunc(slices.Clone(order), func(a, b int) bool { return points[a].Concurrency == points[b].Concurrency })
	if len(different) < 3 {
		return -1, ""
	}
	if text := tooShort(points, order); text != "" {
		return -1, "whether there is a knee cannot be told: " + text
	}
	most := 0.0
	for _, i := range order {
		most = max(most, points[i].Total)
	}
	k := slices.IndexFunc(order, func(i int) bool { return points[i].Total >= kneeShare*most })
	at = order[k]
	p, last := points[at], points[order[len(order)-1]]
	switch {
	case k == len(order)-1:
		return -1, fmt.Sprintf("no knee up to concurrency %d: output still rises there, to %s tokens/s", p.Concurrency, number.Short(p.Total))
	case last.Total < kneeShare*p.Total:
		return at, fmt.Sprintf("the knee is at concurrency %d, %s output tokens/s; at %d they fall to %s", p.Concurrency, number.Short(p.Total), last.Concurrency, number.Short(last.Total))
	}
	return at, fmt.Sprintf(
		"the knee is at concurrency %d, %s output tokens/s; up to concurrency %d they rise by at most %s %%",
		p.Concurrency, number.Short(p.Total), last.Concurrency, number.Digits(100*(most/p.Total-1), 2))
}

// tooShort lists the concurrencies, in order, of runs that are too short to judge, or "".
func tooShort(points []ParetoPoint, order []int) string {
	var short []string
	for _, i := range order {
		if p := points[i]; p.short {
			short = append(short, number.Whole(p.Concurrency))
		}
	}
	short = slices.Compact(short)
	switch n := len(short); n {
	case 0:
		return ""
	case 1:
		return "the run at concurrency " + short[0] + " is too short to judge"
	default:
		return "the runs at concurrency " + strings.Join(short[:n-1], ", ") + " and " + short[n-1] + " are too short to judge"
	}
}

// capacityRate is the request rate, in requests/s, for which
// Capacity counts servers. AIPerf's example uses the same rate.
const capacityRate = 1000

// Capacity says how many servers like the measured one are needed for capacityRate requests/s. It returns "" unless the
// points go past their knee: below the knee the request rate is the offered load and says nothing about the server.
func Capacity(points []ParetoPoint) string {
	at, _ := Knee(points)
	if at < 0 {
		return ""
	}
	n, _ := servers(capacityRate, points[at].Requests)
	text := fmt.Sprintf("%s requests/s of this kind need %s at the rate of the knee", number.Whole(capacityRate), number.Count(n, "server"))
	best := slices.MaxFunc(points, func(a, b ParetoPoint) int { return cmp.Compare(a.Good, b.Good) }) // NaN sorts first
	switch within, some := servers(capacityRate, best.Good); {
	case some:
		text += fmt.Sprintf("; %s within the SLO, at the goodput of concurrency %d", number.Whole(within), best.Concurrency)
	case !math.IsNaN(best.Good):
		text += "; no number of servers meets the SLO, since no request met it"
	}
	return text
}

// servers returns how many servers a request rate needs if each serves goodput, both in requests/s: requests ÷ goodput,
// rounded up. It returns false if there is no goodput.
func servers(requests, goodput float64) (int, bool) {
	if !(goodput > 0) || !(requests >= 0) || requests/goodput > math.MaxInt32 {
		return 0, false
	}
	return int(math.Ceil(requests / goodput)), true
}

// frontier reports for each point whether it is known and no other point beats it in both directions. A point beats
// another only if their intervals are disjoint, so points that differ by chance are all on the frontier.
func frontier(points []ParetoPoint) []bool {
	front := make([]bool, len(points))
	for i, p := range points {
		front[i] = !math.IsNaN(p.user.Value) && !slices.ContainsFunc(points, func(other ParetoPoint) bool {
			return other.user.Low > p.user.High && other.output.Low > p.output.High
		})
	}
	return front
}

// tradeOff returns the section of the Pareto curve. The section has no title if there are fewer than two points.
func tradeOff(points []ParetoPoint) Section {
	s := Section{Short: "Trade-off"}
	points = slices.DeleteFunc(points, func(p ParetoPoint) bool { return math.IsNaN(p.Total) })
	gpus := !slices.ContainsFunc(points, func(p ParetoPoint) bool { return p.GPUs < 1 })
	if len(points) < 2 {
		return s
	}
	knee, text := Knee(points)
	s.Title = "Throughput against speed for each user"
	if text != "" {
		s.Title = upper(text)
	}
	y := chart.Axis{Label: "output", Unit: "tokens/s"}
	if gpus {
		y = chart.Axis{Label: "output per GPU", Unit: "tokens/s per GPU"}
		for i, p := range points {
			per := 1 / float64(p.GPUs)
			points[i].output = stats.Interval{Value: per * p.output.Value, Low: per * p.output.Low, High: per * p.output.High}
		}
	} else {
		s.Text = append(s.Text, "The number of GPUs is not known for every run, so the plot shows the total output instead of the output per GPU.")
	}
	s.Text = append(s.Text, fmt.Sprintf("The knee is the lowest concurrency that reaches %g %% of the highest output. "+
		"A run is dominated if another run is better in both directions and their 95 %% intervals do not overlap. "+
		"A run that is too short for intervals is not judged.", 100*kneeShare))
	if text := Capacity(points); text != "" {
		s.Text = append(s.Text, upper(text)+".")
	}
	s.Tables = []chart.Table{ParetoTable(points)}
	s.Plots = append(paretoPlots(points, knee, y), loadPlots(points)...)
	return s
}

// ParetoTable returns a row for each point. The page and the terminal show it.
func ParetoTable(points []ParetoPoint) chart.Table {
	knee, _ := Knee(points)
	t := chart.Table{Columns: chart.Columns("run", "concurrency", "output tokens/s", "per GPU", "per user",
		"TTFT mean", "TTFT p99", "attainment", "<")}
	for i, p := range points {
		concurrency, note := "–", ""
		if p.Concurrency > 0 {
			concurrency = number.Whole(p.Concurrency)
		}
		if i == knee {
			note = "knee"
		}
		t.Rows = append(t.Rows, []string{
			p.Name, concurrency, number.Cell(p.Total), number.Cell(p.PerGPU()), number.Cell(p.PerUser),
			number.Value(p.TTFT, "ms"), number.Value(p.TTFT99, "ms"), p.Attainment, note,
		})
	}
	return t
}

// paretoPlots returns the plot of the points; there is none if no point has both coordinates.
func paretoPlots(points []ParetoPoint, knee int, y chart.Axis) []chart.Plot {
	front := frontier(points)
	on := chart.Series{Name: "not dominated", Kind: chart.Points}
	off := chart.Series{Name: "dominated", Kind: chart.Points}
	unjudged := chart.Series{Name: "too short to judge", Kind: chart.Points}
	line := chart.Series{Kind: chart.Line, Soft: true}
	var best []ParetoPoint
	for i, p := range points {
		if math.IsNaN(p.user.Value) {
			continue
		}
		name := p.label()
		if i == knee {
			name += " (knee)"
		}
		into := &off
		switch {
		case p.short:
			into = &unjudged
		case front[i]:
			into, best = &on, append(best, p)
		}
		into.Add(p.user.Value, p.output.Value)
		into.Text = append(into.Text, name)
	}
	slices.SortStableFunc(best, func(a, b ParetoPoint) int { return cmp.Compare(a.user.Value, b.user.Value) })
	for _, p := range best {
		line.Add(p.user.Value, p.output.Value)
	}
	all := slices.DeleteFunc([]chart.Series{line, on, off, unjudged}, func(s chart.Series) bool { return len(s.X) == 0 })
	if len(all) == 0 {
		return nil
	}
	p := chart.Plot{
		Title: "Throughput against speed for each user: up and right is better",
		X:     chart.Axis{Label: "output per user", Unit: "tokens/s per user", Zero: true}, Y: y,
		Series: all, Wide: true, Table: new(ParetoTable(points)),
	}
	return []chart.Plot{p}
}

func loadPlots(points []ParetoPoint) []chart.Plot {
	points = slices.DeleteFunc(slices.Clone(points), func(p ParetoPoint) bool { return p.Concurrency < 1 })
	slices.SortStableFunc(points, func(a, b ParetoPoint) int { return cmp.Compare(a.Concurrency, b.Concurrency) })
	output, ttft := chart.Series{Kind: chart.Line}, chart.Series{Kind: chart.Line}
	for _, p := range points {
		output.Add(float64(p.Concurrency), p.Total)
		if !math.IsNaN(p.TTFT) {
			ttft.Add(float64(p.Concurrency), p.TTFT)
		}
	}
	if len(points) < 2 {
		return nil
	}
	x := chart.Axis{
		Label: "concurrency", Unit: "requests in flight",
		Log: slices.Max(output.X) > 10*slices.Min(output.X), Ticks: slices.Compact(slices.Clone(output.X)),
	}
	best := slices.Index(output.Y, slices.Max(output.Y))
	var plots []chart.Plot
	add := func(title string, y chart.Axis, line chart.Series) {
		dots := line
		dots.Kind, dots.Ramp = chart.Points, 1 // in the color of the line
		plots = append(plots, chart.Plot{Title: title, X: x, Y: y, Series: []chart.Series{line, dots}})
	}
	add(fmt.Sprintf("Output is highest at concurrency %g: %s tokens/s", output.X[best], number.Short(output.Y[best])),
		chart.Axis{Label: "output", Unit: "tokens/s"}, output)
	if n := len(ttft.X); n > 1 {
		add(fmt.Sprintf("TTFT goes from %s at concurrency %g to %s at %g", number.Value(ttft.Y[0], "ms"), ttft.X[0],
			number.Value(ttft.Y[n-1], "ms"), ttft.X[n-1]), chart.Axis{Label: "TTFT, mean", Unit: "ms"}, ttft)
	}
	return plots
}
