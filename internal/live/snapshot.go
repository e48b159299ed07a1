package live

import (
	"encoding/json"
	"slices"
	"strings"

	"replayd/internal/measure"
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

// news holds the changes since the last tick. Workloads are in the order of the last snapshot.
type news struct {
	Now       instant          `json:"now"`
	Verdict   verdict          `json:"verdict"`
	Workloads []workloadValues `json:"workloads"`
	Notes     []note           `json:"notes,omitempty"` // all notes, if there is a new one

	Comparisons []compared `json:"comparisons"`
}

// described is a workload with the values that do not change while it runs.
type described struct {
	*WorkloadOptions
	SLO     string           `json:"slo"`    // in words
	Bounds  map[string]value `json:"bounds"` // on times, in seconds
	Trace   playing          `json:"trace"`
	Curve   binned           `json:"curve"`
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

type playing struct {
	Path     string `json:"path"`
	Format   string `json:"format"`
	SHA256   string `json:"sha256"`
	Requests int    `json:"requests"`
	From     span   `json:"from"`
	To       span   `json:"to"` // 0: to the end of the trace
	Length   span   `json:"length"`
}

type binned struct {
	Bin      span    `json:"bin"`
	Requests []int64 `json:"requests"`
	Input    []int64 `json:"input_tokens"`
	Output   []int64 `json:"output_tokens"`
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
			Trace: playing{
				Path: o.Trace.Path, Format: o.Trace.Format, SHA256: o.Trace.SHA256[:min(12, len(o.Trace.SHA256))],
				Requests: o.Trace.Requests, From: span(o.From), To: span(o.To), Length: span(o.Length),
			},
			Curve: binned{
				span(o.Curve.Bin), append([]int64{}, o.Curve.Requests...),
				append([]int64{}, o.Curve.InputTokens...), append([]int64{}, o.Curve.OutputTokens...),
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

// news encodes the rows that the tick closed, in the order of the workloads. The caller holds the lock.
func (b *Board) news(rows [][]row) []byte {
	n := news{Now: instant(b.now), Comparisons: b.compared}
	if b.noted {
		n.Notes = b.notes
	}
	n.Workloads = b.values(func(i int, h *history) ([]failure, []row) { return h.failures.news(), rows[i] })
	n.Verdict = verdictOf(b.workloads, n.Workloads, b.compared)
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
