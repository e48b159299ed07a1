package trace

import (
	"strconv"
	"time"
)

// sessions writes a row of replayd's own format. A parent that was not written, because the rows are part of a trace, is left
// out. A row that is left without parents is due at its Offset.
func (w *Writer) sessions(r *Record) error {
	w.without("parts", r.Parts != nil)
	after := w.positionsOf(r)
	w.line = appendPlace(w.line, w.rows, after)
	w.put(r)
	return w.sessionsRest(r, !w.options.Untimed && (!r.Floating || len(after) == 0))
}

// positionsOf returns the row's After by places in the file; nil if the row has none.
func (w *Writer) positionsOf(r *Record) []Edge {
	var after []Edge
	if r.After != nil {
		after = []Edge{}
	}
	for _, e := range r.After {
		if e.Row < len(w.position) && w.position[e.Row] > 0 {
			after = append(after, Edge{w.position[e.Row] - 1, e.Wait})
		}
	}
	if len(after) < len(r.After) {
		w.lose("left out parents of", "they are not among the rows that are written")
	}
	return after
}

func (w *Writer) put(r *Record) {
	if r.Session != "" {
		w.position = append(w.position, make([]int, max(0, r.Number+1-len(w.position)))...)
		w.position[r.Number] = w.rows + 1
	}
}

// appendPlace appends the first fields of a row: its own number and its parents.
func appendPlace(line []byte, row int, after []Edge) []byte {
	line = strconv.AppendInt(append(line, `{"row":`...), int64(row), 10)
	if after == nil {
		return line
	}
	line = append(line, `,"after":[`...)
	for i, e := range after {
		if i > 0 {
			line = append(line, ',')
		}
		line = strconv.AppendInt(append(line, `{"row":`...), int64(e.Row), 10)
		if e.Wait > 0 {
			line = appendUnits(append(line, `,"wait":`...), e.Wait, time.Millisecond)
		}
		line = append(line, '}')
	}
	return append(line, ']')
}

// sessionsRest appends the fields of a row behind its parents.
func (w *Writer) sessionsRest(r *Record, timed bool) error {
	if err := w.string("agent_id", r.Agent); err != nil {
		return err
	}
	if r.Gap != 0 {
		w.millis("gap", r.Gap)
	}
	return w.mooncake(r, timed)
}
