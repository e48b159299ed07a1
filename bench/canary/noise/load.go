package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"time"
)

// A row is a request of the trace.
type row struct {
	at             float64 // seconds since the first one
	prompt, output int     // tokens
}

// A trace is rows in order, which begin anew after its span.
type trace struct {
	rows []row
	span float64 // seconds
}

// readAzure reads the Azure LLM inference trace of 2023: TIMESTAMP,ContextTokens,GeneratedTokens.
func readAzure(path string) (*trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := csv.NewReader(f)
	if _, err := lines.Read(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	t := &trace{}
	var first time.Time
	for n := 2; ; n++ {
		line, err := lines.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		at, noTime := time.Parse("2006-01-02 15:04:05", line[0])
		prompt, noPrompt := strconv.Atoi(line[1])
		output, noOutput := strconv.Atoi(line[2])
		if err := errors.Join(noTime, noPrompt, noOutput); err != nil {
			return nil, fmt.Errorf("%s:%d: want a time and two numbers of tokens: %w", path, n, err)
		}
		if first.IsZero() {
			first = at
		}
		t.rows = append(t.rows, row{at.Sub(first).Seconds(), max(1, prompt), max(1, output)})
	}
	if len(t.rows) < 1000 {
		return nil, fmt.Errorf("%s: want at least 1000 rows, got %d", path, len(t.rows))
	}
	t.span = t.rows[len(t.rows)-1].at + t.rows[len(t.rows)-1].at/float64(len(t.rows))
	return t, nil
}

// standIn has Poisson arrivals, and lengths with the logarithms' means and deviations of the Azure trace.
func standIn() *trace {
	rng := rand.New(rand.NewPCG(2023, 11))
	t := &trace{}
	length := func(mean, sd float64, most int) int {
		return min(most, max(1, int(math.Exp(mean+sd*rng.NormFloat64()))))
	}
	for range 20_000 {
		t.rows = append(t.rows, row{t.span, length(6.63, 0.985, 14_050), length(5.02, 0.859, 1000)})
		t.span += rng.ExpFloat64() / 5.53
	}
	return t
}

// A load is a rate of requests and the pods that answer them, on each side.
type load struct {
	name      string
	rate      float64 // requests per second
	pods      int
	prefill   float64 // tokens per second
	perDecode float64 // seconds of a step, for each answer in the batch
	seen      figures // of the finding
}

// figures are those of a load: mean TTFT in seconds, and shares of pairs. 0: not known.
type figures struct{ ttft, queued, calm float64 }

var loads = []load{
	{name: "L1", rate: 1, pods: 1, prefill: 8000, perDecode: 0.0001, seen: figures{0.25, 0.22, 0.73}},
	{name: "L5", rate: 5, pods: 1, prefill: 25_000, perDecode: 0.0001, seen: figures{0.13, 0.46, 0.47}},
	{name: "L20", rate: 20, pods: 4, prefill: 25_000, perDecode: 0.0001, seen: figures{calm: 0.09}},
	fastL1,
}

// fastL1 is L1 on L5's engine.
var fastL1 = load{name: "L1 fast", rate: 1, pods: 1, prefill: 25_000, perDecode: 0.0001}

// A cursor goes through the rows of a trace at a rate, from one of them.
type cursor struct {
	trace   *trace
	stretch float64 // seconds of the load for a second of the trace
	row     int
	before  float64 // seconds until the trace's present beginning
}

// newCursor begins at any row.
func newCursor(t *trace, rate float64, rng *rand.Rand) *cursor {
	c := &cursor{trace: t, stretch: float64(len(t.rows)) / t.span / rate, row: rng.IntN(len(t.rows))}
	c.before = -t.rows[c.row].at
	return c
}

// next returns the next row and its instant.
func (c *cursor) next() (row, float64) {
	r := c.trace.rows[c.row]
	at := (c.before + r.at) * c.stretch
	if c.row++; c.row == len(c.trace.rows) {
		c.row, c.before = 0, c.before+c.trace.span
	}
	return r, at
}
