package trace

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// Merge streams the rows of several files as one trace, by Offset. Rows that are due together keep the order of the
// files. Ids and sessions of different files are kept apart, so that rows of different files share no prefix; with
// shareIDs, equal ids and sessions mean the same in all files. Line stays as in the row's file, and so does Number unless rows
// name parents: then no two rows have the same.
func Merge(files []*File, shareIDs bool) (next func() (Record, error), err error) {
	if err := mergeable(files); err != nil {
		return nil, err
	}
	sources := make([]source, len(files))
	graph := slices.ContainsFunc(files, func(f *File) bool { return f.Stats.Edges > 0 })
	rows := 0
	for i, f := range files {
		s := &sources[i]
		if graph {
			s.before = rows
			rows += f.Stats.Requests
		}
		if s.rows, err = f.Rows(0); err != nil {
			return nil, err
		}
		if !shareIDs {
			s.apart = apartOf(files, i)
		}
		if err := s.advance(); err != nil {
			return nil, err
		}
	}
	return func() (Record, error) {
		best := -1
		for i := range sources {
			if !sources[i].over && (best < 0 || sources[i].head.Offset < sources[best].head.Offset) {
				best = i
			}
		}
		if best < 0 {
			return Record{}, io.EOF
		}
		r := sources[best].head
		return r, sources[best].advance()
	}, nil
}

// mergeable reports why the files cannot become one trace.
func mergeable(files []*File) error {
	var errs []error
	var ids *File
	for _, f := range files {
		if f.Stats.HasTimestamps != files[0].Stats.HasTimestamps {
			errs = append(errs, fmt.Errorf("%s: want timestamps in all traces or in none, %s differs", f.name, files[0].name))
		}
		if f.Stats.RowsWithIDs == 0 {
			continue
		}
		if ids == nil {
			ids = f
		}
		if f.Stats.BlockTokens != ids.Stats.BlockTokens {
			errs = append(errs, fmt.Errorf("%s: want blocks of %d tokens, as in %s, got %d",
				f.name, ids.Stats.BlockTokens, ids.name, f.Stats.BlockTokens))
		}
	}
	return errors.Join(errs...)
}

// A source is one of the merged files.
type source struct {
	rows   *Rows
	apart  func(*Record) // renames ids and sessions; nil: they stay
	before int           // added to the numbers of rows, so that no two files share one
	head   Record
	over   bool
}

func (s *source) advance() (err error) {
	switch s.head, err = s.rows.Next(); {
	case errors.Is(err, io.EOF):
		s.over = true
		return nil
	case err == nil && s.apart != nil:
		s.apart(&s.head)
	}
	s.head.Number += s.before
	s.head.First, s.head.Last = false, false // another file may have more of the session
	for i := range s.head.After {
		s.head.After[i].Row += s.before
	}
	return err
}

// apartOf returns a function that renames the ids and sessions of file i. If ids count from 0, as in Mooncake, the ids
// of a file follow those of the files before. If ids are hashes, there is no room behind them: each file but the first
// has its own bijection, and two ids collide only by chance.
func apartOf(files []*File, i int) func(*Record) {
	var before, all uint64
	counted := true
	for k, f := range files {
		if k == i {
			before = all
		}
		if f.maxID >= math.MaxInt64-all {
			counted = false
			break
		}
		all += f.maxID + 1
	}
	return func(r *Record) {
		for j, id := range r.Blocks {
			switch {
			case counted:
				r.Blocks[j] = before + id
			case i > 0:
				r.Blocks[j] = Mix(id ^ Mix(uint64(i)))
			}
		}
		if r.Session != "" {
			r.Session = fmt.Sprintf("%d:%s", i+1, r.Session)
		}
		if len(r.Session) > MaxSessionBytes {
			r.Session = fmt.Sprintf("%d:%x", i+1, sha256.Sum256([]byte(r.Session)))
		}
	}
}
