//go:build bench && linux

package truth_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"replayd/bench/lab"
)

// samples are the errors of one slice in µs, client − server. The tail follows an answer's last chunk at once, and one
// read often has both. The chunk then has the time of the tail, as with any engine. inner has all chunks but these.
type samples struct{ ttft, chunk, inner, gap lab.Sample }

// A slice is the result of one client's turn.
type slice struct {
	whole, clean samples // clean: no steal then and just before and after
	perToken     float64 // CPU µs, between the first counted request and the last one's start
}

// judge compares the times of a client with the server's stamps.
func judge(t *testing.T, l load, p played, stamps map[string]lab.Stamped, steal *lab.Steal) slice {
	t.Helper()
	var s slice
	var from, to int64 = math.MaxInt64, 0
	for _, seen := range p.seen {
		if row(t, seen.ID) >= l.streams {
			from, to = min(from, seen.Start), max(to, seen.Start)
		}
	}
	inside, matched := 0, 0
	for _, seen := range p.seen {
		stamped, ok := stamps[seen.ID]
		seen.Chunks = apart(seen.Chunks, stamped.Chunks)
		if !ok || len(stamped.Chunks) != tokens || len(seen.Chunks) != tokens || stamped.End == 0 {
			t.Fatalf("%s: want %d chunks and their stamps, got %d and %d, known %v, ended at %d", seen.ID, tokens, len(seen.Chunks), len(stamped.Chunks), ok, stamped.End)
		}
		matched++
		for _, ns := range seen.Chunks {
			if ns >= from && ns <= to {
				inside++
			}
		}
		if row(t, seen.ID) < l.streams {
			continue
		}
		s.add(seen, stamped, steal)
	}
	if matched != len(stamps) {
		t.Errorf("want each of the %d answers seen, got %d", len(stamps), matched)
	}
	s.perToken = float64(p.cpu.Between(from, to).Microseconds()) / float64(inside)
	return s
}

// apart returns the times of all chunks of an answer. The export has one time for those that came in one read: that of the read's last
// one, which is the first time that the client had after the server's stamp.
func apart(seen, stamped []int64) (all []int64) {
	if len(seen) >= len(stamped) {
		return seen
	}
	used := 0
	for _, at := range stamped {
		for used < len(seen) && seen[used] < at {
			if used++; len(all) == 0 || used < len(seen) && all[len(all)-1] != seen[used-1] {
				return nil // a time that belongs to no stamp
			}
		}
		if used == len(seen) {
			return nil
		}
		all = append(all, seen[used])
	}
	return all
}

func (s *slice) add(seen lab.Seen, stamped lab.Stamped, steal *lab.Steal) {
	us := func(ns int64) float64 { return float64(ns) / 1e3 }
	e := us((seen.Chunks[0] - seen.Start) - (stamped.Chunks[0] - stamped.Arrival))
	s.whole.ttft = append(s.whole.ttft, e)
	if steal.Clean(seen.Start, seen.Chunks[0]) {
		s.clean.ttft = append(s.clean.ttft, e)
	}
	before := false
	for i, ns := range seen.Chunks {
		e := us(ns - stamped.Chunks[i])
		clean := steal.Clean(stamped.Chunks[i], ns)
		s.whole.chunk = append(s.whole.chunk, e)
		if clean {
			s.clean.chunk = append(s.clean.chunk, e)
		}
		if i < len(seen.Chunks)-1 {
			s.whole.inner = append(s.whole.inner, e)
			if clean {
				s.clean.inner = append(s.clean.inner, e)
			}
		}
		if i > 0 {
			e -= us(seen.Chunks[i-1] - stamped.Chunks[i-1])
			s.whole.gap = append(s.whole.gap, e)
			if clean && before {
				s.clean.gap = append(s.clean.gap, e)
			}
		}
		before = clean
	}
}

// row returns the last part of an id: workload/loop/row.
func row(t *testing.T, id string) int {
	t.Helper()
	n, err := strconv.Atoi(id[strings.LastIndexByte(id, '/')+1:])
	if err != nil {
		t.Fatalf("want an id such as truth/0/17, got %q", id)
	}
	return n
}
