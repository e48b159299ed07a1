package trace

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sort"
	"time"
)

// Rows that wait for others are due in an order that follows from the waits as they are played, and can stand
// anywhere in the file. The order takes 8 bytes a row. Each row is read at its own place.

func (f *File) sort(rows []parent) {
	f.graph = rows
	f.order = inOrder(len(rows), func(a, b int) int { return cmp.Compare(rows[a].at, rows[b].at) })
}

// inOrder returns the numbers of so many rows, sorted. Equal ones keep the order of their numbers.
func inOrder(rows int, compare func(a, b int) int) []int {
	order := make([]int, rows)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, compare)
	return order
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
	return of.at, f.line(number, int(of.line), &r.scratch)
}

// bits is a set of numbers from 0, in one bit each.
type bits []uint64

func (b *bits) set(n int) {
	for n/64 >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[n/64] |= 1 << (n % 64)
}

func (b bits) clear(n int) { b[n/64] &^= 1 << (n % 64) }

func (b bits) has(n int) bool { return n/64 < len(b) && b[n/64]>>(n%64)&1 == 1 }

// endsOf returns which rows are the first and the last of their sessions.
func endsOf(rows []parent, sessions int) (first, last bits) {
	ends := make([][2]int, sessions+1) // rows, from 1
	for i, of := range rows {
		e := &ends[of.session]
		if e[0] == 0 || of.at < rows[e[0]-1].at {
			e[0] = i + 1
		}
		if e[1] == 0 || of.at >= rows[e[1]-1].at {
			e[1] = i + 1
		}
	}
	for _, e := range ends[1:] {
		first.set(e[0] - 1)
		last.set(e[1] - 1)
	}
	return first, last
}

// Sessions returns the numbers of the rows of each session in due order, the sessions in the order of their first rows. A row without
// a session stands alone. It needs Options.BySession. The caller must not change it.
func (f *File) Sessions() [][]int { return f.sessions }

func (f *File) group(rows []parent) {
	f.graph = rows
	before := func(a, b int) int { return cmp.Or(cmp.Compare(rows[a].at, rows[b].at), cmp.Compare(a, b)) }
	first := map[int32]int{}
	for i, of := range rows {
		if earlier, known := first[of.session]; !known || before(i, earlier) < 0 {
			first[of.session] = i
		}
	}
	head := func(row int) int {
		if rows[row].session == 0 {
			return row
		}
		return first[rows[row].session]
	}
	all := inOrder(len(rows), func(a, b int) int { return cmp.Or(before(head(a), head(b)), before(a, b)) })
	for begin, i := 0, 1; i <= len(all); i++ {
		if i == len(all) || head(all[i]) != head(all[begin]) {
			f.sessions = append(f.sessions, all[begin:i:i])
			begin = i
		}
	}
}

// Row returns the row with a number, of a file that was opened with Options.BySession. The error wraps ErrChanged if the file changed after
// Open checked it. Several goroutines may call it at once.
func (f *File) Row(number int) (Record, error) {
	if number < 0 || number >= len(f.starts) || f.sessions == nil {
		return Record{}, fmt.Errorf("%s: row %d: want the number of a row of a file read by session", f.name, number)
	}
	if err := f.unchanged(); err != nil {
		return Record{}, err
	}
	of, r := f.graph[number], Rows{file: f}
	if err := f.line(number, int(of.line), &r.scratch); err != nil {
		return Record{}, err
	}
	return r.record(of.at), nil
}

// Offset returns when a row of a file that was opened with Options.BySession is due.
func (f *File) Offset(number int) time.Duration { return time.Duration(f.graph[number].at - f.base) }
