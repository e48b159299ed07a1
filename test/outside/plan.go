package outside

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
)

// A Row is a line of a trace in Mooncake's format, parsed by the tests and not by replayd's reader.
type Row struct {
	Timestamp int64  `json:"timestamp"` // ms
	Input     int    `json:"input_length"`
	Output    int    `json:"output_length"`
	Session   string `json:"session_id,omitempty"`
}

// A Plan is the plan of a workload with align wall_clock: rows at multiples of Every since 1970.
type Plan struct {
	Rows  []Row
	Speed float64
	Every time.Duration
}

// A Due is a row of a loop with its instant.
type Due struct {
	Loop int64
	Row  int
	At   time.Time
}

// RequestID returns the X-Request-Id.
func (d Due) RequestID(workload string) string {
	return fmt.Sprintf("%s/%d/%d", workload, d.Loop, d.Row)
}

// Offset returns a row's offset in its loop.
func (p *Plan) Offset(row int) time.Duration {
	ms := p.Rows[row].Timestamp - p.Rows[0].Timestamp
	return time.Duration(math.Round(float64(ms) * 1e6 / p.Speed))
}

// At returns the instant of a row in a loop.
func (p *Plan) At(loop int64, row int) time.Time {
	return time.Unix(0, loop*int64(p.Every)).Add(p.Offset(row))
}

// LoopAt returns the number of the loop at an instant.
func (p *Plan) LoopAt(t time.Time) int64 { return t.UnixNano() / int64(p.Every) }

// Between returns the rows due in [from, to), in order. A nil plan has none.
func (p *Plan) Between(from, to time.Time) (all []Due) {
	if p == nil {
		return nil
	}
	for loop := p.LoopAt(from); loop <= p.LoopAt(to); loop++ {
		for row := range p.Rows {
			if at := p.At(loop, row); !at.Before(from) && at.Before(to) {
				all = append(all, Due{loop, row, at})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Due) int { return a.At.Compare(b.At) })
	return all
}

// Position returns the trace time at an instant. It stands still after the last row.
func (p *Plan) Position(t time.Time) time.Duration {
	in := t.Sub(time.Unix(0, p.LoopAt(t)*int64(p.Every)))
	return time.Duration(float64(min(in, p.Offset(len(p.Rows)-1))) * p.Speed)
}

// Plain makes rows without sessions, each at a distinct instant:
// perSecond rows a second, at a random place in their step.
func Plain(rows int, perSecond float64, input, output int, seed uint64) (all []Row) {
	random := rand.New(rand.NewPCG(seed, 0))
	step := 1000 / perSecond // ms
	for i := range rows {
		at := float64(i) * step
		if i > 0 {
			at += random.Float64() * (step - 2)
		}
		all = append(all, Row{Timestamp: int64(at), Input: input, Output: output})
	}
	return all
}

// Trace returns a trace file of rows.
func Trace(rows []Row) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	for _, r := range rows {
		if err := enc.Encode(r); err != nil {
			panic(err) // no row fails
		}
	}
	return b.String()
}

// Rows returns the rows of a trace file.
func Rows(t *testing.T, path string) []Row {
	t.Helper()
	rows, torn := Lines[Row](t, path)
	if torn || !slices.IsSortedFunc(rows, func(a, b Row) int { return cmp.Compare(a.Timestamp, b.Timestamp) }) {
		t.Fatalf("%s: want whole rows in order of their timestamps", path)
	}
	return rows
}
