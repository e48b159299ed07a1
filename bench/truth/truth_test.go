//go:build bench && linux

package truth_test

import (
	"fmt"
	"testing"
	"time"

	"replayd/bench/lab"
	"replayd/bench/rig"
)

// TestTruth compares replayd's times with the server's stamps, from 100 streams to 2,000.
func TestTruth(t *testing.T) {
	compare(t, []load{
		{streams: 100, itl: 10 * time.Millisecond, few: true},
		{streams: 300, itl: 10 * time.Millisecond},
		{streams: 500, itl: 10 * time.Millisecond, few: true},
		{streams: 700, itl: 10 * time.Millisecond},
		{streams: 1000, itl: 40 * time.Millisecond},
		{streams: 2000, itl: 40 * time.Millisecond},
		{streams: 1000, itl: 10 * time.Millisecond, past: true},
	})
}

// compare plays loads with each client and prints the errors.
func compare(t *testing.T, loads []load) {
	t.Helper()
	size := rig.ReadSize(t)
	steal := rig.WatchSteal(t)
	ttft, chunk, gap, native := errorTable("TTFT error"), errorTable("Chunk error"), errorTable("Gap error"), nativeTable()
	inner := errorTable("Chunk error, the last chunk of each answer left out: the tail follows it at once, and is often read with it")
	for _, l := range loads {
		if !l.few && !size.Full {
			continue
		}
		rounds := map[string][]slice{}
		for range size.Rounds {
			for _, c := range clients {
				if l.past && c.name == floor {
					continue
				}
				s := l.serve(t)
				p := c.play(t, l, size.Slice, s)
				judged := judge(t, l, p, s.Stamps(t), steal)
				rounds[c.name] = append(rounds[c.name], judged)
				if c.name == "replayd" {
					l.holdNative(t, native, p)
				}
			}
		}
		for _, c := range clients {
			if of := rounds[c.name]; len(of) > 0 {
				ours := rounds["replayd"]
				addRow(ttft, l, c.name, of, ours, func(s samples) lab.Sample { return s.ttft })
				addRow(chunk, l, c.name, of, ours, func(s samples) lab.Sample { return s.chunk })
				addRow(inner, l, c.name, of, ours, func(s samples) lab.Sample { return s.inner })
				addRow(gap, l, c.name, of, ours, func(s samples) lab.Sample { return s.gap })
			}
		}
	}
	steal.Stop()
	for _, table := range []*lab.Table{ttft, chunk, inner, gap} {
		table.Note("Medians over rounds, %d of %v; in a round each client has its turn. Clean: from slices of 100 ms without steal in them or beside them. ×: the client's clean figure over replayd's.", size.Rounds, size.Slice)
	}
	rig.Results(t, "truth", steal, ttft, chunk, inner, gap, native)
}

func errorTable(what string) *lab.Table {
	return &lab.Table{
		Title: what + ", client − server, µs:",
		Head:  []string{"streams", "client", "clean mean", "p50", "p99", "max", "× mean", "× p99", "all mean", "p50", "p99", "max", "clean, %", "CPU µs a token"},
	}
}

// addRow adds the medians over rounds to the table.
func addRow(table *lab.Table, l load, name string, of, ours []slice, pick func(samples) lab.Sample) {
	median := func(of []slice, figure func(slice) float64) float64 {
		var values []float64
		for _, s := range of {
			values = append(values, figure(s))
		}
		return lab.Median(values...)
	}
	figures := []func(lab.Sample) float64{
		lab.Sample.Mean, func(s lab.Sample) float64 { return s.Quantile(0.5) }, func(s lab.Sample) float64 { return s.Quantile(0.99) }, lab.Sample.Max,
	}
	cells := []string{l.String(), name}
	add := func(v float64) { cells = append(cells, lab.Number(v)) }
	for _, f := range figures {
		add(median(of, func(s slice) float64 { return f(pick(s.clean)) }))
	}
	for _, f := range []func(lab.Sample) float64{figures[0], figures[2]} {
		clean := func(s slice) float64 { return f(pick(s.clean)) }
		cells = append(cells, fmt.Sprintf("%.1f", median(of, clean)/median(ours, clean)))
	}
	for _, f := range figures {
		add(median(of, func(s slice) float64 { return f(pick(s.whole)) }))
	}
	add(median(of, func(s slice) float64 { return 100 * float64(len(pick(s.clean))) / float64(len(pick(s.whole))) }))
	add(median(of, func(s slice) float64 { return s.perToken }))
	table.Add(cells...)
}
