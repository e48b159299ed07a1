package report

import (
	"cmp"
	"fmt"
	"slices"

	"replayd/internal/chart"
	"replayd/internal/number"
)

func (l runData) throughput() Section {
	s := Section{Short: "Throughput"}
	if len(l.rows) < 2 || l.seconds <= 0 {
		return s
	}
	width := timeBin(l.seconds, throughBins)
	n := max(1, int(l.seconds/width+0.5)) // the last bin is 0.5 to 1.5 times as wide
	requests, sent, tokens := make([]float64, n), make([]float64, n), make([]float64, n)
	bin := func(at float64) int { return min(n-1, max(0, int(at/width))) }
	for _, r := range l.rows {
		if r.Start > 0 { // 0: the connection failed, so nothing was sent
			sent[bin(l.at(r.Start))]++
		}
	}
	for _, r := range l.ok {
		requests[bin(l.at(r.End))]++
		spread(tokens, width, l.at(cmp.Or(r.First, r.End)), l.at(r.End), float64(r.Output))
	}
	flight, all, most := l.inFlight(n, width)
	x := make([]float64, n+1)
	for i := range n {
		x[i] = float64(i) * width
		length := width
		if i == n-1 {
			length = l.seconds - x[i]
		}
		for _, values := range [][]float64{requests, sent, tokens, flight} {
			values[i] /= length
		}
	}
	x[n] = l.seconds
	held := func(values []float64) []float64 { return append(slices.Clone(values), values[n-1]) }
	time := chart.Axis{Label: "time", Unit: "s", Ends: [2]float64{0, l.seconds}}
	rate := l.single("request_throughput")
	output := l.single("output_token_throughput")
	s.Title = fmt.Sprintf("%s requests and %s output tokens per second", number.Value(rate, ""), number.Value(output, ""))
	s.Plots = append(s.Plots, chart.Plot{
		Title: fmt.Sprintf("Requests: %s ok per second over the run", number.Value(rate, "")), X: time, Y: chart.Axis{Label: "requests", Unit: "requests/s"},
		Series: []chart.Series{{Name: "ended ok", Kind: chart.Step, X: x, Y: held(requests)}, {Name: "sent", Kind: chart.Step, X: x, Y: held(sent), Soft: true}},
		Note:   fmt.Sprintf("In bins of %s.", number.Value(width, "s")),
	})
	if output > 0 {
		s.Plots = append(s.Plots, chart.Plot{
			Title: fmt.Sprintf("Output: %s tokens per second over the run", number.Value(output, "")), X: time, Y: chart.Axis{Label: "output", Unit: "tokens/s"},
			Series: []chart.Series{{Kind: chart.Step, X: x, Y: held(tokens)}},
			Note:   "The tokens of an answer count evenly between its first and its last content.",
		})
	}
	inFlight := chart.Plot{
		Title: fmt.Sprintf("In flight: %s on average, %s at most", number.Value(all/l.seconds, ""), number.Whole(most)),
		X:     time, Y: chart.Axis{Label: "in flight", Unit: "requests"},
		Series: []chart.Series{{Kind: chart.Step, X: x, Y: held(flight)}},
		Note:   "From the send to the last content. Each step is the mean of its bin.",
	}
	if c := float64(l.Settings.Concurrency); c > 0 && slices.Max(flight) < 1.5*c {
		inFlight.Marks = []chart.Mark{{Name: "concurrency", At: c}}
	}
	s.Plots = append(s.Plots, inFlight)
	return s
}

// spread adds amount to the bins between from and to in proportion
// to time. If to is not after from, one bin gets it all.
func spread(into []float64, width, from, to, amount float64) {
	last := len(into) - 1
	first := min(last, max(0, int(from/width)))
	if to <= from {
		into[first] += amount
		return
	}
	for i := first; i <= last && float64(i)*width < to; i++ {
		part := min(to, float64(i+1)*width) - max(from, float64(i)*width)
		if i == last {
			part = to - max(from, float64(i)*width)
		}
		into[i] += amount * part / (to - from)
	}
}

// inFlight returns the request-seconds in flight in each bin and in all, and the exact peak of requests in flight. A
// request that ends when another begins does not overlap it.
func (l runData) inFlight(n int, width float64) (flight []float64, all float64, most int) {
	type event struct {
		at int64
		by int
	}
	flight = make([]float64, n)
	events := make([]event, 0, 2*len(l.rows))
	for _, r := range l.rows {
		if r.Start <= 0 || r.End <= r.Start {
			continue
		}
		took := float64(r.End-r.Start) / 1e9
		all += took
		spread(flight, width, l.at(r.Start), l.at(r.End), took)
		events = append(events, event{r.Start, 1}, event{r.End, -1})
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	now := 0
	for _, e := range events {
		now += e.by
		most = max(most, now)
	}
	return flight, all, most
}
