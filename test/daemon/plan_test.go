//go:build daemon

package daemon_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

// A row is a line of a trace in Mooncake's format, as this test reads it: not by replayd's own reader.
type row struct {
	Timestamp int64  `json:"timestamp"` // ms
	Input     int    `json:"input_length"`
	Output    int    `json:"output_length"`
	Session   string `json:"session_id,omitempty"`
}

// A plan is what a workload with phase wall has to send: rows at multiples of every since 1970.
type plan struct {
	rows  []row
	speed float64
	every time.Duration
}

// A due is a row of a loop at its instant.
type due struct {
	loop int64
	row  int
	at   time.Time
}

func (d due) id(workload string) string { return fmt.Sprintf("%s/%d/%d", workload, d.loop, d.row) }

// offset is a row's instant in its loop.
func (p *plan) offset(row int) time.Duration {
	ms := p.rows[row].Timestamp - p.rows[0].Timestamp
	return time.Duration(math.Round(float64(ms) * 1e6 / p.speed))
}

func (p *plan) at(loop int64, row int) time.Time {
	return time.Unix(0, loop*int64(p.every)).Add(p.offset(row))
}

func (p *plan) loop(t time.Time) int64 { return t.UnixNano() / int64(p.every) }

// between gives the rows due from an instant on and before another, in order. A nil plan has none.
func (p *plan) between(from, to time.Time) (all []due) {
	if p == nil {
		return nil
	}
	for loop := p.loop(from); loop <= p.loop(to); loop++ {
		for row := range p.rows {
			if at := p.at(loop, row); !at.Before(from) && at.Before(to) {
				all = append(all, due{loop, row, at})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b due) int { return a.at.Compare(b.at) })
	return all
}

// position is the trace time that is played at an instant: at rest after the last row.
func (p *plan) position(t time.Time) time.Duration {
	in := t.Sub(time.Unix(0, p.loop(t)*int64(p.every)))
	return time.Duration(float64(min(in, p.offset(len(p.rows)-1))) * p.speed)
}

// plain makes rows without sessions, a distinct instant for each: per second so many, somewhere in their part of it.
func plain(rows int, perSecond float64, input, output int, seed uint64) (all []row) {
	random := rand.New(rand.NewPCG(seed, 0))
	step := 1000 / perSecond // ms
	for i := range rows {
		at := float64(i) * step
		if i > 0 {
			at += random.Float64() * (step - 2)
		}
		all = append(all, row{Timestamp: int64(at), Input: input, Output: output})
	}
	return all
}

// text is a trace file of rows.
func text(rows []row) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	for _, r := range rows {
		if err := enc.Encode(r); err != nil {
			panic(err) // no row fails
		}
	}
	return b.String()
}

// read gives the rows of a trace file.
func read(t *testing.T, path string) []row {
	t.Helper()
	rows, torn := outside.Lines[row](t, path)
	if torn || !slices.IsSortedFunc(rows, func(a, b row) int { return cmp.Compare(a.Timestamp, b.Timestamp) }) {
		t.Fatalf("%s: want whole rows in order of their timestamps", path)
	}
	return rows
}
