package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"replayd/internal/measure"
	"replayd/internal/result"
	"replayd/internal/stats"
)

// A runData is a run with the values that its page computes once.
type runData struct {
	result.Run
	rows    []result.Row // the measured rows, ordered by start
	ok      []result.Row
	figures result.Statistics
	zero    int64   // the first start, Unix ns
	seconds float64 // from zero to the last end
	blocks  int     // the number of blocks of equal time
}

func newRunData(run result.Run) runData {
	l := runData{Run: run, rows: run.Measured(), figures: run.Statistics()}
	l.ok = slices.DeleteFunc(slices.Clone(l.rows), func(r result.Row) bool { return r.Outcome != measure.OK })
	l.zero = l.figures.First
	if l.zero > 0 { // a request was written
		l.seconds = max(0, float64(l.figures.Last-l.zero)/1e9)
	}
	l.blocks = blocksOf(l)
	return l
}

func (l runData) name() string { return cmp.Or(l.Name, "this run") }

// at converts an instant in Unix ns to seconds since the first start.
func (l runData) at(instant int64) float64 { return float64(instant-l.zero) / 1e9 }

type shownQuantity struct {
	measure.Quantity
	short, long string
}

var shownQuantities = []shownQuantity{
	{measure.TTFT, "TTFT", "time to first token"},
	{measure.TPOT, "ITL", "inter-token latency"},
	{measure.E2E, "latency", "request latency"},
}

// of returns the distribution of a metric. The distribution has no values if the metric is not defined.
func (l runData) of(tag string) stats.Distribution {
	m, _ := l.figures.Metric(tag)
	return m.Of
}

// single returns the value of a single-valued metric, or NaN if the metric is not defined.
func (l runData) single(tag string) float64 {
	if m, known := l.figures.Metric(tag); known {
		return m.Avg()
	}
	return math.NaN()
}

// warnings lists what limits the figures of a run: an early stop, a warm prefix cache, other lengths than asked, parts
// missing from its files. A long list is cut and the rest counted.
func warnings(run result.Run) []string {
	const most = 8
	var all []string
	for _, line := range run.Reading.Lines() {
		all = append(all, upper(line[0])+": "+line[1])
	}
	if warm := run.Cache.Warm(); warm != "" {
		all = append(all, upper(warm))
	}
	for _, text := range run.Lengths().Warnings() {
		all = append(all, upper(text))
	}
	if run.Cut {
		all = append(all, "The run was stopped before its end: what was not yet due then is not expected")
	}
	all = append(all, run.Partial...)
	if len(all) > most {
		all = append(all[:most], fmt.Sprintf("%d more of this kind", len(all)-most))
	}
	return all
}

// A run is cut into blocks of equal time, because requests that share a queue are not independent. A run has at most
// maxBlocks blocks. No block is shorter than the mean latency; otherwise one request would span several blocks. A run
// with fewer than fewestBlocks blocks is not judged. docs/decisions/0021-blocks-of-time.md has the simulations.
const (
	maxBlocks    = 30
	fewestBlocks = 12
)

// blocksOf returns the number of blocks of a run, or 1 if the run is too short.
func blocksOf(l runData) int {
	mean := l.meanLatency()
	n := int(min(maxBlocks, l.seconds/mean))
	if !(mean > 0) || n < fewestBlocks {
		return 1
	}
	return n
}

// meanLatency returns the mean time from start to end of the ok requests, in seconds; NaN without any.
func (l runData) meanLatency() float64 {
	var lived float64
	for _, r := range l.ok {
		lived += float64(r.End-r.Start) / 1e9
	}
	return lived / float64(len(l.ok))
}
