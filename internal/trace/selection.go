package trace

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// A Selection says which rows of a trace to keep.
type Selection struct {
	From, To        time.Duration // keep offsets ≥ From and < To; To 0: to the end
	FirstRow, ToRow int           // keep rows with Number ≥ FirstRow and < ToRow; ToRow 0: to the last
	Sample          float64       // share to keep of sessions, which are kept whole, and of rows without a session
	Seed            uint64        // of the sample: another seed selects other rows
	KeepTimes       bool          // keep offsets as they are; else the first kept row is due at 0
}

// Rows streams the selected rows of a file, in due order.
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
	named := Record{Session: cmp.Or(r.Session, strconv.Itoa(r.Number))}
	return float64(Mix(named.Key()^Mix(s.Seed))>>11)/(1<<53) < s.Sample
}

// OnSide returns the place of a row, of Record.Place, among the pods of one side of a comparison. Each round of a side's pods begins with another one, by
// chance: so sessions go round all pairs of pods, and the pods of both sides get their requests in equally close succession.
func OnSide(place uint64, candidate bool, pods uint64) uint64 {
	round := 2 * (place / pods)
	if candidate {
		round++
	}
	return place%pods + Mix(round)%pods
}

// Mix is a bijection of 64 bits in which every input bit affects all output bits: a step of SplitMix64 (Steele, Lea and
// Flood, OOPSLA 2014).
func Mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
