package trace

import (
	"cmp"
	"io"
	"slices"
	"sort"
)

// Rows that wait for others are due in an order that follows from the waits as they are played, and can stand anywhere in the file. The
// order takes 8 bytes a row. Each row is read at its own place.

// sort puts the rows in due order.
func (f *File) sort(rows []parent) {
	f.graph, f.order = rows, make([]int, len(rows))
	for i := range f.order {
		f.order[i] = i
	}
	slices.SortStableFunc(f.order, func(a, b int) int { return cmp.Compare(rows[a].at, rows[b].at) })
}

// seek returns the index of the first row due at an instant or later.
func (f *File) seek(at int64) int {
	return sort.Search(len(f.order), func(i int) bool { return f.graph[f.order[i]].at >= at })
}

// fromOrder leaves the row due next in scratch.
func (r *Rows) fromOrder() (at int64, err error) {
	f := r.file
	if r.next%markRows == 0 || r.next == len(f.order) {
		if err := f.unchanged(); err != nil {
			return 0, err
		}
	}
	if r.next == len(f.order) {
		return 0, io.EOF
	}
	number := f.order[r.next]
	r.next++
	of := f.graph[number]
	if err := f.line(number, int(of.line), &r.scratch); err != nil {
		return 0, err
	}
	r.scratch.Number, r.scratch.Line = number, int(of.line)
	return of.at, nil
}
