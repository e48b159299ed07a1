package schedule

import (
	"cmp"
	"io"
	"slices"
	"sort"
	"time"

	"replayd/internal/trace"
)

// A Source is the rows of a plan. FromFile, FromRecords and Generated make one.
type Source struct {
	HasTimestamps bool
	Last          time.Duration // offset of the last row
	Tick          time.Duration // median gap between distinct timestamps; 0 if there is only one

	Count   int  // number of rows; 0: unknown until they are read
	Endless bool // there is no last row
	Turns   bool // with Users, row i is already a turn of user i mod n; else the plan deals the conversations out

	// Rows starts at the first row whose Offset is at least from; rows without timestamps, at the first row. Its next gives rows in
	// order of Offset, then of the file, and io.EOF after the last.
	Rows func(from time.Duration) (next func() (trace.Record, error), err error)

	// Gaps returns the times between two offsets with rows that are longer than a span; nil: there are none.
	Gaps func(least time.Duration) []trace.Gap

	// Sessions returns the indices of the rows of each session in due order, the sessions in the order of their first
	// rows. Row returns the row of an index, Offset its offset. nil: the rows cannot be read by session.
	Sessions func() [][]int
	Row      func(index int) (trace.Record, error)
	Offset   func(index int) time.Duration

	// Reread returns a row that Rows gave, again with what is sent; nil: rows are kept in memory.
	Reread func(trace.Record) (trace.Record, error)
}

// FromFile returns the Source of a checked trace file, which must stay open while the plan is used, and was opened with the
// Gap of Options.LeastGap.
func FromFile(f *trace.File) Source {
	src := Source{
		HasTimestamps: f.Stats.HasTimestamps, Last: f.Stats.Span, Tick: f.Stats.Tick, Count: f.Stats.Requests,
		Rows: func(from time.Duration) (func() (trace.Record, error), error) {
			rows, err := f.Rows(from)
			if err != nil {
				return nil, err
			}
			return rows.Next, nil
		},
		Reread: f.Reread,
		Gaps:   func(time.Duration) []trace.Gap { return f.Stats.Gaps },
	}
	if f.Sessions() != nil {
		src.Sessions, src.Row, src.Offset = f.Sessions, f.Row, f.Offset
	}
	return src
}

// FromRecords returns the Source of rows in memory, which must not change. timed says that their Offsets are used.
func FromRecords(rows []trace.Record, timed bool) Source {
	src := Source{HasTimestamps: timed, Count: len(rows)}
	rows = slices.Clone(rows)
	if timed {
		slices.SortStableFunc(rows, func(a, b trace.Record) int { return cmp.Compare(a.Offset, b.Offset) })
		src.measure(rows)
		src.Gaps = func(least time.Duration) []trace.Gap { return gapsOf(rows, least) }
	}
	sessions := group(rows)
	for _, indices := range sessions {
		for i, index := range indices {
			in := rows[index].Session != ""
			rows[index].First, rows[index].Last = in && i == 0, in && i == len(indices)-1
		}
	}
	src.Sessions = func() [][]int { return sessions }
	src.Row = func(index int) (trace.Record, error) { return rows[index], nil }
	src.Offset = func(index int) time.Duration { return rows[index].Offset }
	src.Rows = func(from time.Duration) (func() (trace.Record, error), error) {
		i := 0
		if timed {
			i = sort.Search(len(rows), func(i int) bool { return rows[i].Offset >= from })
		}
		return func() (trace.Record, error) {
			if i == len(rows) {
				return trace.Record{}, io.EOF
			}
			i++
			return rows[i-1], nil
		}, nil
	}
	return src
}

func group(rows []trace.Record) (sessions [][]int) {
	indices := map[string]int{}
	for i, r := range rows {
		at, known := indices[r.Session]
		if !known || r.Session == "" {
			at = len(sessions)
			indices[r.Session] = at
			sessions = append(sessions, nil)
		}
		sessions[at] = append(sessions[at], i)
	}
	return sessions
}

// measure derives the times from rows in order.
func (s *Source) measure(rows []trace.Record) {
	var gaps []time.Duration
	for i, r := range rows {
		if i > 0 && r.Offset > s.Last {
			gaps = append(gaps, r.Offset-s.Last)
		}
		s.Last = r.Offset
	}
	if slices.Sort(gaps); len(gaps) > 0 {
		s.Tick = (gaps[(len(gaps)-1)/2] + gaps[len(gaps)/2]) / 2
	}
}

// Generated returns the Source of n synthetic rows, 0: without an end, that are generated each time and are the same each time. With
// Users they are the turns of the users in turn.
func Generated(n int, rows func() (next func() trace.Record)) Source {
	return Source{
		Count: n, Endless: n == 0, Turns: true,
		Rows: func(time.Duration) (func() (trace.Record, error), error) {
			next, given := rows(), 0
			return func() (trace.Record, error) {
				if n > 0 && given == n {
					return trace.Record{}, io.EOF
				}
				given++
				return next(), nil
			}, nil
		},
	}
}
