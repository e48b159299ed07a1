// Package bounded bounds the label values of /metrics that others choose: those of one page, and those over the life of the process.
package bounded

import (
	"iter"
	"strings"
	"time"
)

// A Set has an entry for each of at most so many values of a label, and keeps a V with each. A value keeps its
// entry until it has not been seen for a time and another value needs the entry. So values that are in use stay,
// those of a fleet that is replaced each day follow one another, and values that are made up without end get at
// most as many new entries in that time as the set has. A Set is not safe for concurrent use.
type Set[V any] struct {
	most    int
	forget  time.Duration
	entries map[string]*entry[V]
	full    time.Time // no entry becomes free before this
}

type entry[V any] struct {
	seen  time.Time
	value V
}

// NewSet returns a set with most entries. An entry becomes free when its value has not been seen for the time forget.
func NewSet[V any](most int, forget time.Duration) *Set[V] {
	return &Set[V]{most: most, forget: forget, entries: map[string]*entry[V]{}}
}

// See records that a value was seen now, and returns its V; nil: the value has no entry. It allocates for a new value.
func (s *Set[V]) See(value string, now time.Time) *V {
	p := s.entries[value]
	if p == nil {
		if len(s.entries) >= s.most && !s.free(now) {
			return nil
		}
		p = &entry[V]{}
		s.entries[strings.Clone(value)] = p // value may be a part of a whole page
	}
	p.seen = now
	return &p.value
}

// free frees the entry of the value that was seen longest ago, if that was long ago.
func (s *Set[V]) free(now time.Time) bool {
	if now.Before(s.full) {
		return false
	}
	oldest, first := "", time.Time{}
	for value, p := range s.entries {
		if first.IsZero() || p.seen.Before(first) {
			oldest, first = value, p.seen
		}
	}
	if s.full = first.Add(s.forget); now.Before(s.full) {
		return false
	}
	delete(s.entries, oldest)
	return true
}

// Has reports whether a value has an entry.
func (s *Set[V]) Has(value string) bool { return s.entries[value] != nil }

// All yields the values that have an entry, each with the entry.
func (s *Set[V]) All() iter.Seq2[string, *V] {
	return func(yield func(string, *V) bool) {
		for value, p := range s.entries {
			if !yield(value, &p.value) {
				return
			}
		}
	}
}
