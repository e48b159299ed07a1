package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"replayd/internal/number"
	"replayd/internal/result"
	"replayd/internal/stats"
)

// A ParetoPoint is what one run trades: what a user sees against what the server makes.
type ParetoPoint struct {
	Name        string
	Concurrency int     // 0: it was no closed loop
	PerUser     float64 // Σ (output tokens − 1) ÷ Σ (last content − first content); NaN where nothing was streamed
	Total       float64 // output tokens/s
	Requests    float64 // ok requests/s
	Good        float64 // good requests/s; NaN without bounds
	GPUs        int     // 0: not known
	TTFT        float64 // mean, ms; NaN where nothing was streamed

	user, output stats.Interval // of PerUser, and of Total or, in a picture, PerGPU
}

// ParetoOf is the point of a run.
func ParetoOf(run result.Run) ParetoPoint { return look(run).pareto() }

func (l lookedAt) pareto() ParetoPoint {
	user, output := perUser(l).Interval(tail), outputRate(l).Interval(tail)
	return ParetoPoint{
		Name: l.name(), Concurrency: l.Settings.Concurrency, GPUs: l.Settings.GPUs, user: user, output: output,
		PerUser: user.Value, Total: l.single("output_token_throughput"), TTFT: l.single("time_to_first_token"),
		Requests: l.single("request_throughput"), Good: l.single("goodput"),
	}
}

// PerGPU is Total / GPUs; NaN where those are not known.
func (p ParetoPoint) PerGPU() float64 {
	if p.GPUs < 1 {
		return math.NaN()
	}
	return p.Total / float64(p.GPUs)
}

// label names a point in a picture.
func (p ParetoPoint) label() string {
	if p.Concurrency > 0 {
		return fmt.Sprintf("c=%d", p.Concurrency)
	}
	return p.Name
}

// kneeShare is the part of the highest throughput that the knee reaches.
const kneeShare = 0.95

// Knee is the place of the run beyond which more load brings no more throughput: the one of the least concurrency that reaches 95 %
// of the highest output tokens/s. Text says so. It is −1 where output still rises at the
// last, which text says too, and where there are fewer than three closed loops of different concurrency, or none made tokens. The points may be in any order.
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
	return at, fmt.Sprintf("the knee is at concurrency %d, %s output tokens/s; beyond it up to %d they do not rise by more than %s", p.Concurrency, number.Short(p.Total), last.Concurrency, percentOver(most, p.Total))
}

// capacityRate is the rate for which Capacity counts servers, requests/s: AIPerf's own example has it.
const capacityRate = 1000

// Capacity says how many servers such as the one measured so many requests such as these take. It is "" unless the points go past
// their knee: below it the rate is that of the load offered, and says nothing of the server.
func Capacity(points []ParetoPoint) string {
	at, _ := Knee(points)
	if at < 0 {
		return ""
	}
	n, _ := servers(capacityRate, points[at].Requests)
	text := fmt.Sprintf("servers such as this for %d such requests/s: %s, by the rate at the knee", capacityRate, number.Whole(n))
	best := slices.MaxFunc(points, func(a, b ParetoPoint) int { return cmp.Compare(a.Good, b.Good) }) // NaN is less than all
	switch within, some := servers(capacityRate, best.Good); {
	case some:
		text += fmt.Sprintf("; %s within the bounds, by the goodput at concurrency %d", number.Whole(within), best.Concurrency)
	case !math.IsNaN(best.Good):
		text += "; no number of them within the bounds, since no request kept them"
	}
	return text
}

// servers is how many servers such as the one that was measured serve a number of requests a second within all bounds: the
// rate over the goodput, rounded up. False when nothing was goodput.
func servers(requests, goodput float64) (int, bool) {
	if !(goodput > 0) || !(requests >= 0) || requests/goodput > math.MaxInt32 {
		return 0, false
	}
	return int(math.Ceil(requests / goodput)), true
}

func percentOver(a, b float64) string { return number.Digits(100*(a/b-1), 2) + " %" }

// frontier says of each point whether it is known and no other beats it in both directions. One beats another where their intervals
// lie apart: two that differ by chance stand beside each other.
func frontier(points []ParetoPoint) []bool {
	front := make([]bool, len(points))
	for i, p := range points {
		front[i] = !math.IsNaN(p.user.Value) && !slices.ContainsFunc(points, func(other ParetoPoint) bool {
			return other.user.Low > p.user.High && other.output.Low > p.output.High
		})
	}
	return front
}
