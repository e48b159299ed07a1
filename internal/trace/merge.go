package trace

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
)

// Merge streams the rows of several files as one, by Offset, those due together in the order of the files. Rows of
// different files have no ids and no sessions in common, so that they share no prefix, unless shareIDs says that the files
// mean the same by them. Number and Line stay those of the file.
func Merge(files []*File, shareIDs bool) (next func() (Record, error), err error) {
	if err := mergeable(files); err != nil {
		return nil, err
	}
	sources := make([]source, len(files))
	for i, f := range files {
		s := &sources[i]
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

// mergeable finds what keeps files from being one trace.
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

// A source is one of the files that are merged.
type source struct {
	rows  *Rows
	apart func(*Record) // gives ids and sessions their new names; nil: they keep them
	head  Record
	over  bool
}

func (s *source) advance() (err error) {
	switch s.head, err = s.rows.Next(); {
	case errors.Is(err, io.EOF):
		s.over = true
		return nil
	case err == nil && s.apart != nil:
		s.apart(&s.head)
	}
	return err
}

// apartOf renames what file i has. Ids that count from 0, as Mooncake's, follow those of the files before. Where they are
// hashes there is no room behind them: then each file but the first has its own bijection, and what is left is chance.
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
				r.Blocks[j] = mix(id ^ mix(uint64(i)))
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
