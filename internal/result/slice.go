package result

import (
	"cmp"
	"slices"
)

// A Slice is the requests of a run that were sent in one period of time. Its figures are AIPerf's for these requests
// alone, whenever they ended. Rates are over the time from the slice's first send to its last end.
type Slice struct {
	Index      int   // from 0; periods without a send have an index but no Slice
	Start, End int64 // Unix ns
	Complete   bool  // the run sent requests until the end of the period or later
	Figures    Statistics
	Rows       []Row
}

// Slices cuts a run into periods of Settings.Slice, from the first send on. It returns nil if Settings.Slice is 0.
// AIPerf cuts at multiples of the duration since the Unix epoch, so its first slice is mostly short.
func (r Run) Slices() []Slice {
	length := int64(r.Settings.Slice)
	rows := r.Measured()
	if length <= 0 || len(rows) == 0 {
		return nil
	}
	sent := func(row Row) int64 { return cmp.Or(row.Start, row.End) }
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(sent(a), sent(b)) })
	first, last := sent(rows[0]), sent(rows[len(rows)-1])

	var all []Slice
	for len(rows) > 0 {
		index := (sent(rows[0]) - first) / length
		s := Slice{Index: int(index), Start: first + index*length, End: first + (index+1)*length}
		s.Complete = last >= s.End
		n := 0
		for n < len(rows) && sent(rows[n]) < s.End {
			n++
		}
		s.Rows, rows = rows[:n], rows[n:]
		s.Figures = Aggregate(s.Rows, r.Settings)
		all = append(all, s)
	}
	return all
}
