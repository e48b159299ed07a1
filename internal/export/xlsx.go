package export

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/xuri/excelize/v2"

	"replayd/internal/result"
)

// maxSheetRows is the most rows of an Excel sheet.
const maxSheetRows = 1 << 20

// WriteXLSX writes a workbook with two sheets: the figures of a run, and a line for each request, including warm-up.
// Requests beyond the row limit of a sheet are left out, and the first sheet says so.
func WriteXLSX(w io.Writer, r result.Run) (err error) {
	book := excelize.NewFile()
	defer func() { err = errors.Join(err, book.Close()) }()
	_, err = book.NewSheet("requests")
	if err := errors.Join(err, book.SetSheetName(book.GetSheetName(0), "summary")); err != nil {
		return err
	}
	rows, partial := r.Rows, slices.Clone(r.Partial)
	if most := maxSheetRows - 1; len(rows) > most {
		partial = append(partial, fmt.Sprintf("the sheet of requests has the first %d of %d", most, len(rows)))
		rows = rows[:most]
	}
	err = errors.Join(
		writeSheet(book, "summary", summaryLines(r, partial)), writeSheet(book, "requests", requestLines(rows)))
	if err != nil {
		return err
	}
	return book.Write(w)
}

// writeSheet streams lines into a sheet and freezes the first line.
func writeSheet(book *excelize.File, name string, lines func(yield func([]any) bool)) error {
	s, err := book.NewStreamWriter(name)
	if err != nil {
		return err
	}
	panes := excelize.Panes{Freeze: true, YSplit: 1, TopLeftCell: "A2", ActivePane: "bottomLeft"}
	if err := errors.Join(s.SetColWidth(1, 1, 36), s.SetPanes(&panes)); err != nil {
		return err
	}
	at := 0
	for line := range lines {
		at++
		if err := s.SetRow(fmt.Sprintf("A%d", at), line); err != nil {
			return fmt.Errorf("sheet %s: line %d: %w", name, at, err)
		}
	}
	return s.Flush()
}

// cell returns a number, or nil for NaN and infinities.
func cell(v float64) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return v
}

func summaryLines(r result.Run, partial []string) func(yield func([]any) bool) {
	f := r.Statistics()
	percentiles := percentilesOf(r.Settings)
	head := []any{"Metric", "Unit", "Count", "Average", "Minimum", "Maximum"}
	for _, p := range percentiles {
		head = append(head, result.PercentileName(p))
	}
	lines := [][]any{append(head, "Std")}
	for _, m := range f.Metrics {
		if m.Single {
			lines = append(lines, []any{m.Name, m.Unit, nil, cell(m.Value)})
			continue
		}
		line := []any{m.Name, m.Unit, m.Of.N()}
		for _, v := range columnValues(m, percentiles) {
			line = append(line, cell(v))
		}
		lines = append(lines, line)
	}
	lines = append(lines, []any{}, []any{successLine(r, f)})
	for _, text := range slices.Concat(plannedLines(r), namedLines(r.Lengths().Lines()), namedLines(r.Reading.Lines())) {
		lines = append(lines, []any{text})
	}
	for _, p := range partial {
		lines = append(lines, []any{"Incomplete: " + p})
	}
	return slices.Values(lines)
}

func requestLines(rows []result.Row) func(yield func([]any) bool) {
	return func(yield func([]any) bool) {
		head := []any{
			"x_request_id", "conversation_id", "session_num", "turn_index", "phase", "outcome", "status",
			"start (UTC)", "start_ns", "due_ns", "lateness (ms)",
			"time_to_first_token (ms)", "inter_token_latency (ms)", "request_latency (ms)",
			"requested_isl", "input_sequence_length", "requested_osl", "output_sequence_length", "error",
		}
		if !yield(head) {
			return
		}
		for _, r := range rows {
			var start any
			if r.Start > 0 {
				start = time.Unix(0, r.Start).UTC().Format("2006-01-02 15:04:05.000")
			}
			line := []any{
				r.ID, r.Conversation, r.Session, r.Turn, r.Phase.String(), string(r.Outcome), orNull(r.Status),
				start, nanoseconds(r.Start), nanoseconds(r.Due), cell(r.Lateness),
				cell(r.TTFT), cell(r.ITL), cell(r.Latency),
				orNull(r.Prompt.Asked), orNull(r.Input), orNull(r.Answer.Asked), orNull(r.Output), r.Error,
			}
			if !yield(line) {
				return
			}
		}
	}
}

// nanoseconds formats an instant as text: a number in a cell has 15 digits, Unix time in ns has 19.
func nanoseconds(ns int64) any {
	if ns == 0 {
		return nil
	}
	return fmt.Sprint(ns)
}
