//go:build bench && linux

package truth_test

import (
	"testing"
	"time"

	"replayd/bench/lab"
	"replayd/bench/rig"
)

// A pacing is a kind of load with 1,000 requests/s.
type pacing struct {
	name   string
	tokens int  // of each answer
	group  int  // requests that are due at one instant
	few    bool // measured at CI's size too
}

// TestPacer shows, at 1,000 requests/s, how late the pacer is, and the time from there to the write of the first byte.
func TestPacer(t *testing.T) {
	size := rig.ReadSize(t)
	steal := rig.WatchSteal(t)
	table := &lab.Table{
		Title: "1,000 requests/s, µs: pacer, its instant − due; hand-over, write − that instant:",
		Head: []string{
			"requests", "clean: pacer p50", "p90", "p99", "hand-over p50", "p90", "p99",
			"all: pacer p50", "p90", "p99", "hand-over p50", "p90", "p99", "clean, %",
		},
	}
	loads := []pacing{
		{name: "nothing streams", tokens: 1, group: 1, few: true},
		{name: "500 streams at 10ms", tokens: 45, group: 1, few: true}, // 50 ms and 44 gaps of 10 ms
		{name: "20 at each instant, nothing streams", tokens: 1, group: 20},
		{name: "20 at each instant, 500 streams", tokens: 45, group: 20},
	}
	type samples struct{ pacer, handOver []lab.Sample }
	var seen [2]map[string]*samples // all of them, and those without steal
	for i := range seen {
		seen[i] = map[string]*samples{}
	}
	for range size.Rounds {
		for _, l := range loads {
			if !l.few && !size.Full {
				continue
			}
			records := l.play(t, size.Slice)
			for i := range seen {
				var pacer, handOver lab.Sample
				for _, r := range records {
					if i == 1 && !steal.Clean(r.Ready, r.Write) {
						continue
					}
					pacer = append(pacer, float64(r.Lane-r.Ready)/1e3)
					handOver = append(handOver, float64(r.Write-r.Lane)/1e3)
				}
				s := seen[i][l.name]
				if s == nil {
					s = &samples{}
					seen[i][l.name] = s
				}
				s.pacer, s.handOver = append(s.pacer, pacer), append(s.handOver, handOver)
			}
		}
	}
	steal.Stop()
	for _, l := range loads {
		all, clean := seen[0][l.name], seen[1][l.name]
		if all == nil {
			continue
		}
		cells := append([]string{l.name}, micros(clean.pacer)...)
		cells = append(append(cells, micros(clean.handOver)...), micros(all.pacer)...)
		cells = append(cells, micros(all.handOver)...)
		var shares []float64
		for i := range all.pacer {
			shares = append(shares, 100*float64(len(clean.pacer[i]))/float64(len(all.pacer[i])))
		}
		table.Add(append(cells, lab.Number(lab.Median(shares...)))...)
	}
	table.Note("Medians of %d rounds of %v, interleaved; the first half second of each counts in no figure. Clean: without steal in the slices of 100 ms around.", size.Rounds, size.Slice)
	rig.Results(t, "pacer", steal, table)
}

// play returns the records after the first half second, in which connections are opened.
func (l pacing) play(t *testing.T, slice time.Duration) []record {
	t.Helper()
	const warm = 500
	n := warm + int(slice/time.Millisecond)
	s := rig.Serve(t, rig.Options{}, "--ttft", ttft.String(), "--itl", "10ms")
	args := []string{"--arrival", "constant", "--rate", "1000", "--lanes", "2000"}
	if l.group > 1 {
		args = []string{"--lanes", "2000"}
	}
	path := runRecords(t, s, traceOf(n, l.group, l.tokens, time.Duration(l.group)*time.Millisecond), slice+time.Minute, args...)
	records := readRecords(t, path, n, l.tokens)
	matched(t, records, s.Stamps(t), l.tokens)
	return records[warm:]
}
