// Growth reads a trace as replayd does: it checks the whole trace, makes a plan, and reads every row in due order. It
// prints the time and the memory of that as a line of JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"replayd/bench/lab"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: growth TRACE")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A reading is the output; times are in nanoseconds.
type reading struct {
	Rows, Bytes              int64
	Check, Plan, First, Read time.Duration
	Checked, Whole           int64 // peak memory in bytes, at the first row and at the end
}

func run(ctx context.Context, path string) error {
	var r reading
	began := time.Now()
	step := func(took *time.Duration) {
		now := time.Now()
		*took, began = now.Sub(began), now
	}
	f, err := trace.Open(ctx, path, trace.Options{})
	if err != nil {
		return err
	}
	defer f.Close()
	r.Bytes = f.Stats.Bytes
	step(&r.Check)
	plan, err := schedule.New(schedule.FromFile(f),
		schedule.Options{
			Pattern: schedule.Pattern{Arrival: schedule.Exact, Speed: 1},
			Repeat:  schedule.Repeat{Mode: schedule.Once},
		})
	if err != nil {
		return err
	}
	step(&r.Plan)
	rows, err := plan.Rows(plan.Loop(began, began), began)
	if err != nil {
		return err
	}
	for last := began; ; r.Rows++ {
		due, err := rows.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if due.At.Before(last) {
			return fmt.Errorf("row %d: want it due at %v or later, got %v", due.Number, last, due.At)
		}
		if last = due.At; r.Rows == 0 {
			step(&r.First)
			if _, r.Checked, err = lab.Memory(os.Getpid()); err != nil {
				return err
			}
		}
	}
	step(&r.Read)
	if _, r.Whole, err = lab.Memory(os.Getpid()); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}
