package result

import (
	"cmp"
	"slices"
)

// A Slice is the requests of a run that were sent in one stretch of time. Its figures are AIPerf's of these requests alone,
// wherever they ended: the rates are over the time from the first of them that was sent to the last that ended.
type Slice struct {
	Index      int   // from 0; those in which nothing was sent are left out
	Start, End int64 // Unix ns
	Complete   bool  // requests were sent until its end, or after it
	Figures    Statistics
	Rows       []Row
}

// Slices cuts a run into stretches of Settings.Slice, from when the first request was sent; nil without that. AIPerf cuts at
// multiples of the duration since the Unix epoch, so that its first slice is mostly short.
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
