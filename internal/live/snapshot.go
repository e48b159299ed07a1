package live

import (
	"encoding/json"
	"slices"
	"strings"

	"replayd/internal/measure"
	"replayd/internal/number"
)

// A snapshot is the whole page.
type snapshot struct {
	Version     string               `json:"version"`
	Build       string               `json:"build"` // of the page's files: an open page detects an upgrade by it
	Now         instant              `json:"now"`
	Verdict     verdict              `json:"verdict"`
	SlotSeconds span                 `json:"slot_seconds"`
	Slots       int                  `json:"slots"`
	Columns     []string             `json:"columns"`
	Outcomes    []measure.Outcome    `json:"outcomes"`
	DropReasons []measure.DropReason `json:"drop_reasons"`
	Workloads   []described          `json:"workloads"`
	Comparisons []compared           `json:"comparisons"`
	Notes       []note               `json:"notes"` // the oldest first
}

// described is a workload with the values that do not change while it runs.
type described struct {
	*WorkloadOptions
	SLO     string           `json:"slo"`    // in words
	Bounds  map[string]value `json:"bounds"` // on times, in seconds
	Trace   number.Object    `json:"trace"`
	Curve   number.Object    `json:"curve"`
	Figures *workloadValues  `json:"figures"`
}

func boundsOf(slo measure.SLO) map[string]value {
	times := map[string]value{}
	for _, b := range slo {
		if b.Quantity.Unit() == measure.Milliseconds {
			times[b.Quantity.String()] = value(b.Limit / 1e3)
		}
	}
	return times
}

// all returns the page as JSON. The caller holds the lock.
func (b *Board) all() []byte {
	if b.full == nil {
		b.full = encode(b.snapshot())
	}
	return b.full
}

// encode does not fail: JSON can represent all its types.
func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// snapshot shares only immutable data with the Board. The caller holds the lock.
func (b *Board) snapshot() snapshot {
	s := snapshot{
		Version: b.options.Version, Build: b.build, Now: instant(b.now), SlotSeconds: span(slotTime), Slots: slots,
		Columns: columns[:], Outcomes: outcomes, DropReasons: dropReasons,
		Workloads: make([]described, len(b.workloads)), Notes: append([]note{}, b.notes...), Comparisons: b.compared,
	}
	each := b.values(func(_ int, h *history) ([]failure, []row) { return h.failures.all(), slices.Clone(h.rows) })
	for i, w := range b.workloads {
		o := &w.options
		s.Workloads[i] = described{
			WorkloadOptions: o, SLO: strings.ReplaceAll(o.SLO.String(), ",", ", "), Bounds: boundsOf(o.SLO),
			Trace: number.Object{
				"path", o.Trace.Path, "format", o.Trace.Format, "sha256", o.Trace.SHA256[:min(12, len(o.Trace.SHA256))],
				"requests", o.Trace.Requests, "from", span(o.From), "to", span(o.To), "length", span(o.Length),
			},
			Curve: number.Object{
				"bin", span(o.Curve.Bin), "requests", append([]int64{}, o.Curve.Requests...),
				"input_tokens", append([]int64{}, o.Curve.InputTokens...), "output_tokens", append([]int64{}, o.Curve.OutputTokens...),
			},
			Figures: &each[i],
		}
	}
	s.Verdict = verdictOf(b.workloads, each, b.compared)
	return s
}

// values returns the values of all workloads, with the failures and rows that of returns of a locked history.
func (b *Board) values(of func(i int, h *history) ([]failure, []row)) []workloadValues {
	each := make([]workloadValues, len(b.workloads))
	for i, w := range b.workloads {
		each[i] = w.values(b.now)
		each[i].Server = b.servers[w.options.Target]
		w.history.mu.Lock()
		each[i].Failures, each[i].Rows = of(i, w.history)
		w.history.mu.Unlock()
	}
	return each
}

// news encodes the changes since the last tick, with the rows that the tick closed. Workloads are in the order of the
// last snapshot, and a new note comes with all others. The caller holds the lock.
func (b *Board) news(rows [][]row) []byte {
	each := b.values(func(i int, h *history) ([]failure, []row) { return h.failures.news(), rows[i] })
	n := number.Object{"now", instant(b.now), "verdict", verdictOf(b.workloads, each, b.compared), "workloads", each}
	n.AddKnown(b.noted, "notes", b.notes)
	n.Add("comparisons", b.compared)
	return encode(n)
}

// verdictOf judges everything. A comparison counts if it needs a look.
func verdictOf(workloads []*Workload, each []workloadValues, comparisons []compared) verdict {
	names, verdicts := make([]string, len(each)), make([]verdict, len(each))
	for i := range each {
		names[i], verdicts[i] = workloads[i].options.Name, each[i].Verdict
	}
	for _, c := range comparisons {
		if c.Level >= strained {
			names, verdicts = append(names, "comparison "+c.Name), append(verdicts, verdict{Level: c.Level, Text: c.Text})
		}
	}
	return judgeAll(names, verdicts)
}
