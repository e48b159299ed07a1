//go:build bench && linux

package limits_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"replayd/bench/lab"
	"replayd/bench/rig"
	"replayd/test/outside"
)

// bound is the limit of the p99 of chunk errors.
const bound = time.Millisecond

// A height is the result of a client at one load: chunk errors in µs, of all chunks and of those without steal nearby.
type height struct {
	perSecond  float64 // tokens
	all, clean float64 // 99th percentile, µs
}

// TestRamp raises the number of streams and shows up to how many tokens/s each client measures chunk times well.
func TestRamp(t *testing.T) {
	s, steal := rig.ReadSize(t), rig.WatchSteal(t)
	streams := []int{100, 500, 700}
	if s.Full {
		streams = []int{100, 300, 500, 700, 800, 900, 1000}
	}
	loadOf := func(n int) load {
		return load{streams: n, tokens: 100, ttft: 50 * time.Millisecond, itl: 10 * time.Millisecond}
	}
	type key struct{ streams, round int }
	ours, floor := map[key]height{}, map[key]height{}
	for round := range s.Rounds {
		for _, n := range streams {
			l := loadOf(n)
			ours[key{n, round}] = l.height(t, s.Slice, steal, l.report)
			floor[key{n, round}] = l.height(t, s.Slice, steal, l.watched)
		}
	}
	table := &lab.Table{
		Title: fmt.Sprintf("Tokens/s and the error of chunk times, client − server's stamp before its write: 99th percentile in µs; medians of %d rounds of %v a client. "+
			"Clean: without steal near. TTFT 50 ms, ITL 10 ms.", s.Rounds, s.Slice),
		Head: []string{"streams", "asked tokens/s", "replayd's", "error", "clean", "the floor's", "error", "clean"},
	}
	most := map[string]float64{}
	for _, n := range streams {
		row := []string{strconv.Itoa(n), lab.Number(loadOf(n).perSecond())}
		for _, who := range []string{"replayd", "the floor"} {
			of := ours
			if who != "replayd" {
				of = floor
			}
			median := func(value func(height) float64) float64 {
				var all []float64
				for round := range s.Rounds {
					all = append(all, value(of[key{n, round}]))
				}
				return lab.Median(all...)
			}
			rate := median(func(h height) float64 { return h.perSecond })
			clean := median(func(h height) float64 { return h.clean })
			row = append(row, lab.Number(rate), lab.Number(median(func(h height) float64 { return h.all })), lab.Number(clean))
			if clean < float64(bound.Microseconds()) {
				most[who] = max(most[who], rate)
			}
		}
		table.Add(row...)
	}
	table.Note("Under %v, clean: replayd up to %s tokens/s, the floor, with kernel stamps too, up to %s.", bound, lab.Number(most["replayd"]), lab.Number(most["the floor"]))
	rig.Results(t, "ramp", steal, table)
}

// height plays the load with a client and compares the client's times with the server's stamps.
func (l load) height(t *testing.T, slice time.Duration, steal *lab.Steal, play func(*testing.T, string, string, time.Duration) []lab.Seen) (h height) {
	t.Helper()
	dir := t.TempDir()
	stamp := l.server(t, rig.Options{})
	seen := play(t, dir, stamp.URL, l.answer()+slice)
	stamps := stamp.Stamps(t)
	from, to := int64(math.MaxInt64), int64(0) // while as many streams end as begin
	for _, s := range stamps {
		from, to = min(from, s.Arrival+int64(l.answer())), max(to, s.Arrival)
	}
	var all, clean lab.Sample
	for _, r := range seen {
		s, ok := stamps[r.ID]
		if !ok || len(s.Chunks) != l.tokens || len(r.Chunks) != l.tokens {
			t.Fatalf("request %s: want %d chunks, got %d, and %d stamps", r.ID, l.tokens, len(r.Chunks), len(s.Chunks))
		}
		for i, at := range s.Chunks {
			if at < from || at > to {
				continue
			}
			wrong := float64(r.Chunks[i]-at) / 1e3
			all = append(all, wrong)
			if steal.Clean(at, r.Chunks[i]) {
				clean = append(clean, wrong)
			}
		}
	}
	if len(seen) != len(stamps) || len(all) == 0 {
		t.Errorf("want %d requests, some of them within the slice, got %d and %d chunks", len(stamps), len(seen), len(all))
	}
	return height{float64(len(all)) / (float64(to-from) / 1e9), all.Quantile(0.99), clean.Quantile(0.99)}
}

// watched plays the load with bench/floor.
func (l load) watched(t *testing.T, dir, target string, over time.Duration) []lab.Seen {
	t.Helper()
	out := filepath.Join(dir, "seen.jsonl")
	l.loop(t, dir, target, int(over/l.spacing()), l.spacing(), out)
	seen, err := lab.ReadLines[lab.Seen](out)
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// report plays the load once with replayd and reads the times of chunks from its export.
func (l load) report(t *testing.T, dir, target string, over time.Duration) (all []lab.Seen) {
	t.Helper()
	artifacts := filepath.Join(dir, "artifacts")
	p := outside.Start(t, filepath.Join(dir, "replayd.out"), binary, "run", l.trace(t, dir, 0, over), "--url", target, "--lanes", "8192", "--export-gaps", "--artifact-dir", artifacts)
	p.Wait(t, time.Minute)
	if p.Err != nil {
		t.Fatalf("replayd: want exit 0, got %v", p.Err)
	}
	f, err := os.Open(filepath.Join(artifacts, "profile_export.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	type value[T any] struct{ Value T } // ms
	var row struct {
		Metadata struct {
			ID    string `json:"x_request_id"`
			Start int64  `json:"request_start_ns"`
		}
		Metrics struct {
			TTFT value[float64]   `json:"time_to_first_token"`
			Gaps value[[]float64] `json:"inter_chunk_latency"`
		}
		Error any
	}
	for d := json.NewDecoder(bufio.NewReader(f)); ; {
		row.Metrics.Gaps.Value = nil
		if err := d.Decode(&row); errors.Is(err, io.EOF) {
			return all
		} else if err != nil || row.Error != nil {
			t.Fatalf("%s: want ok, got %v, %v", row.Metadata.ID, row.Error, err)
		}
		since := row.Metrics.TTFT.Value
		s := lab.Seen{ID: row.Metadata.ID, Start: row.Metadata.Start}
		at := func() { s.Chunks = append(s.Chunks, s.Start+int64(math.Round(since*1e6))) }
		at()
		for _, gap := range row.Metrics.Gaps.Value {
			since += gap
			at()
		}
		all = append(all, s)
	}
}
