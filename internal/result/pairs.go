package result

import (
	"strings"

	"replayd/internal/measure"
)

// Pairs are the rows that two runs of one trace have in common. Rows are one row of the trace if loop and row of their
// ids, session, turn and asked lengths are equal. The name of the workload counts too if a run has several.
type Pairs struct {
	Of    [2][]Row // rows with a partner, in the order of the first run; partners have one index
	Alone [2][]Row // rows without a partner, each in the order of its run
}

// NewPairs pairs the rows of two runs.
func NewPairs(from, to []Row) Pairs {
	whole := severalWorkloads(from) || severalWorkloads(to)
	free := make(map[rowKey]int, len(to)) // index in to of a row without a partner yet
	for i := range to {
		if key, known := keyOf(&to[i], whole); known {
			free[key] = i
		}
	}
	var p Pairs
	taken := make([]bool, len(to))
	for i := range from {
		key, known := keyOf(&from[i], whole)
		partner, found := free[key]
		if !known || !found {
			p.Alone[0] = append(p.Alone[0], from[i])
			continue
		}
		delete(free, key)
		taken[partner] = true
		p.Of[0], p.Of[1] = append(p.Of[0], from[i]), append(p.Of[1], to[partner])
	}
	for i, row := range to {
		if !taken[i] {
			p.Alone[1] = append(p.Alone[1], row)
		}
	}
	return p
}

// BothOK is the number of pairs in which both rows ended ok.
func (p Pairs) BothOK() (n int) {
	for i := range p.Of[0] {
		if p.Of[0][i].Outcome == measure.OK && p.Of[1][i].Outcome == measure.OK {
			n++
		}
	}
	return n
}

// Most reports whether at least half of the rows of each run have a partner.
func (p Pairs) Most() bool {
	n := len(p.Of[0])
	return n > 0 && n >= len(p.Alone[0]) && n >= len(p.Alone[1])
}

// A rowKey tells rows of a trace apart.
type rowKey struct {
	id, session          string
	turn, prompt, answer int
}

// keyOf returns the key of a row. It is not known if the id is not replayd's.
func keyOf(r *Row, whole bool) (key rowKey, known bool) {
	workload, id := cutID(r.ID)
	if workload == "" {
		return rowKey{}, false
	}
	if whole {
		id = r.ID
	}
	return rowKey{id, r.Conversation, r.Turn, r.Prompt.Asked, r.Answer.Asked}, true
}

// cutID cuts workload/loop/row at the slash after the workload. The workload is "" if the id is none of replayd's.
func cutID(id string) (workload, row string) {
	if last := strings.LastIndexByte(id, '/'); last > 0 {
		if at := strings.LastIndexByte(id[:last], '/'); at > 0 {
			return id[:at], id[at+1:]
		}
	}
	return "", ""
}

func severalWorkloads(rows []Row) bool {
	names := map[string]bool{}
	for i := range rows {
		if workload, _ := cutID(rows[i].ID); workload != "" {
			names[workload] = true
		}
	}
	return len(names) > 1
}
