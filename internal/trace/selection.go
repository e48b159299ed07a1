package trace

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"
)

// A Selection is the part of a trace that is kept.
type Selection struct {
	From, To        time.Duration // offsets from From on and before To; To 0: to the end
	FirstRow, ToRow int           // rows by Number, from FirstRow on and before ToRow; ToRow 0: to the last
	Sample          float64       // share of conversations, and of rows without one; whole conversations stay or go
	Seed            uint64        // of the sample: another seed draws other rows
	KeepTimes       bool          // offsets stay as they are; else the first row that is kept is due at 0
}

// Rows streams what is kept of a file, in due order.
func (s Selection) Rows(f *File) (next func() (Record, error), err error) {
	if err := s.check(f); err != nil {
		return nil, err
	}
	rows, err := f.Rows(s.From)
	if err != nil {
		return nil, err
	}
	first := time.Duration(-1)
	return func() (Record, error) {
		for {
			r, err := rows.Next()
			if err != nil {
				return Record{}, err
			}
			if !s.has(&r) {
				continue
			}
			if first < 0 {
				first = r.Offset
			}
			if !s.KeepTimes {
				r.Offset -= first
			}
			return r, nil
		}
	}, nil
}

func (s Selection) check(f *File) error {
	var errs []error
	if !f.Stats.HasTimestamps && (s.From != 0 || s.To != 0) {
		errs = append(errs, fmt.Errorf("from, to: want a trace with timestamps, %s has none", f.name))
	}
	if s.From < 0 || s.To < 0 || s.To != 0 && s.To <= s.From {
		errs = append(errs, fmt.Errorf("from, to: want 0 ≤ from < to, got %v and %v", s.From, s.To))
	}
	if s.FirstRow < 0 || s.ToRow < 0 || s.ToRow != 0 && s.ToRow <= s.FirstRow {
		errs = append(errs, fmt.Errorf("rows: want 0 ≤ first < end, got %d:%d", s.FirstRow, s.ToRow))
	}
	if !(s.Sample > 0 && s.Sample <= 1) {
		errs = append(errs, fmt.Errorf("sample: want a share above 0 and at most 1, got %v", s.Sample))
	}
	return errors.Join(errs...)
}

func (s Selection) has(r *Record) bool {
	switch {
	case s.To != 0 && r.Offset >= s.To, r.Number < s.FirstRow, s.ToRow != 0 && r.Number >= s.ToRow:
		return false
	case s.Sample == 1:
		return true
	}
	key := r.Session
	if key == "" {
		key = strconv.Itoa(r.Number)
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // never fails
	return float64(mix(h.Sum64()^mix(s.Seed))>>11)/(1<<53) < s.Sample
}

// mix is a bijection of 64 bits that spreads each of them over all: the finalizer of splitmix64.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
