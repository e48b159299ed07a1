package schedule

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"replayd/internal/trace"
)

// A plan of the same rows with other instants goes on with the row that is next by the old plan: each row of the loop comes
// once, before the instant by one plan or from it on by the other, and the next one is not later than by the slower plan.
func TestGoesOn(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 59))
	begin := time.Date(2026, 3, 1, 10, 0, 7, 0, time.UTC)
	for n := range 2000 {
		var rows []trace.Record
		at := time.Duration(0)
		for i := range 1 + rng.IntN(40) {
			rows = append(rows, trace.Record{Number: i, Offset: at, InputTokens: 1, OutputTokens: 1, Session: fmt.Sprint("s", i/3)})
			at += time.Duration(rng.IntN(3)) * 10 * time.Millisecond
		}
		arrival := []Arrival{Exact, Spread, Constant, Poisson, Gamma, Users}[rng.IntN(6)]
		options := func() Options {
			o := Options{Pattern: Pattern{Arrival: arrival, Speed: 1}, Repeat: Repeat{Mode: Loops, Align: Start}, Shard: Shard{Of: 1}}
			switch arrival {
			case Exact, Spread:
				o.Speed = []float64{0.1, 0.3, 1, 3, 7.7}[rng.IntN(5)]
			default:
				o.Rate = []float64{0.5, 3, 100}[rng.IntN(3)]
			}
			switch arrival {
			case Gamma:
				o.Burstiness = 0.3
			case Users:
				o.Users = 3
			case Constant, Poisson:
				if rng.IntN(3) == 0 {
					o.RateOf = Starts
				}
			}
			return o
		}
		first := options()
		second := options()
		second.RateOf = first.RateOf
		src := FromRecords(rows, true)
		old, err := New(src, first)
		if err != nil {
			t.Fatal(err)
		}
		now, err := New(src, second)
		if err != nil {
			t.Fatal(err)
		}
		l := Loop{Number: 5, Start: begin}
		instant := begin.Add(time.Duration(rng.Int64N(int64(old.every))))
		next, skip, _, err := now.GoesOn(old, l, instant)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		var due time.Time
		for _, d := range all(t, old, l, begin) {
			if d.At.Before(instant) {
				got = append(got, d.Number)
			} else if due.IsZero() {
				due = d.At
			}
		}
		came := time.Time{}
		if next.Number == l.Number {
			for _, d := range all(t, now, next, instant) {
				if skip != nil && d.Number == skip.Number && d.Pass == skip.Pass {
					skip = nil
				}
				if skip == nil {
					got = append(got, d.Number)
					if came.IsZero() {
						came = d.At
					}
				}
			}
		}
		if len(got) != len(rows) {
			t.Fatalf("%d: %s, %+v to %+v at %v: want %d rows, got %v", n, arrival, first, second, instant.Sub(begin), len(rows), got)
		}
		if came.After(due) {
			t.Errorf("%d: %s: the next row comes at %v, by the old plan at %v", n, arrival, came, due)
		}
	}
}

// all returns the rows of a loop from an instant on.
func all(t *testing.T, p *Plan, l Loop, from time.Time) (due []Due) {
	t.Helper()
	rows, err := p.Rows(l, from)
	if err != nil {
		t.Fatal(err)
	}
	for {
		d, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return due
		}
		if err != nil {
			t.Fatal(err)
		}
		due = append(due, d)
	}
}
