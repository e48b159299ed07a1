package schedule

import (
	"fmt"
	"math"
	"testing"
	"time"

	"replayd/internal/trace"
)

// Of any n rows without sessions that follow each other in a plan, whatever its shard and its loop, each of n pods
// gets one.
func TestRowsGoRoundThePods(t *testing.T) {
	src := at(make([]time.Duration, 600)...)
	for _, shard := range []Shard{{}, {1, 2}, {0, 3}, {3, 4}} {
		p := plan(t, src, Options{Shard: shard, Pattern: Pattern{Arrival: Constant, Rate: 10}})
		for number := range int64(5) {
			l := Loop{Number: number, Start: epoch}
			for n := uint64(1); n <= 16; n++ {
				last := map[uint64]int{}
				for i, d := range dues(t, p, l, epoch) {
					pod := p.Place(&d) % n
					if before, seen := last[pod]; seen && i-before != int(n) || !seen && i >= int(n) {
						t.Fatalf("shard %v, loop %d: row %d is the first of pod %d of %d since %d",
							shard, number, i, pod, n, before)
					}
					last[pod] = i
				}
			}
		}
	}
}

// All rows of a session have one place, in a replay that joins later, too. Sessions with like names are spread evenly,
// within five standard deviations, also those of one shard.
func TestSessionsAreSpreadOverThePods(t *testing.T) {
	const sessions, turns = 4000, 3
	for _, format := range []string{"%d", "session-%04d", "%d000", "%04d-abc", "%08x00"} {
		var rows []trace.Record
		for i := range sessions * turns {
			rows = append(rows, trace.Record{
				Number: i, Session: fmt.Sprintf(format, i%sessions), Offset: time.Duration(i) * time.Millisecond,
			})
		}
		src := FromRecords(rows, true)
		for _, shard := range []Shard{{}, {1, 4}} {
			p := plan(t, src, Options{Shard: shard, Repeat: Repeat{Every: time.Minute}})
			l := p.Loop(epoch, epoch)
			places, later := map[string]uint64{}, map[string]uint64{}
			for _, d := range dues(t, p, l, epoch) {
				if first, known := places[d.Session]; known && first != p.Place(&d) {
					t.Fatalf("row %d of session %s has another place than its first", d.Number, d.Session)
				}
				places[d.Session] = p.Place(&d)
			}
			for _, d := range dues(t, p, l, epoch.Add(5*time.Second)) {
				later[d.Session] = p.Place(&d)
			}
			for s, place := range later {
				if place != places[s] {
					t.Errorf("session %s has place %d, and %d in a replay that joins later", s, places[s], place)
				}
			}
			for _, n := range []int{2, 3, 4, 16} {
				got := make([]int, n)
				for _, place := range places {
					got[place%uint64(n)]++
				}
				mean := float64(len(places)) / float64(n)
				for pod, k := range got {
					if math.Abs(float64(k)-mean) > 5*math.Sqrt(mean) {
						t.Errorf("%s, shard %v: pod %d of %d gets %d of %d sessions", format, shard, pod, n, k, len(places))
					}
				}
			}
		}
	}
}
