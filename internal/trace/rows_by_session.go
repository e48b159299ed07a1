package trace

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Sessions returns the numbers of the rows of each session in due order, the sessions in the order of their first rows. A row without
// a session stands alone. It needs Options.BySession. The caller must not change it.
func (f *File) Sessions() [][]int { return f.sessions }

// group sorts the rows by session.
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
	all := make([]int, len(rows))
	for i := range all {
		all[i] = i
	}
	slices.SortFunc(all, func(a, b int) int { return cmp.Or(before(head(a), head(b)), before(a, b)) })
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
	r.scratch.Number, r.scratch.Line = number, int(of.line)
	if f.chats != nil {
		f.chats.find(&r.scratch)
	}
	return r.record(of.at), nil
}

// Offset returns when a row of a file that was opened with Options.BySession is due.
func (f *File) Offset(number int) time.Duration { return time.Duration(f.graph[number].at - f.base) }
