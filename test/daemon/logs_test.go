//go:build daemon

package daemon_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"replayd/internal/sim"

	"replayd/test/outside"
)

// arrivals reads the engine's log, without replayd's own probes, in order of arrival.
func (s *stage) arrivals(t *testing.T) (all []sim.LogEntry) {
	t.Helper()
	all, _ = outside.Lines[sim.LogEntry](t, s.log) // one may be under way
	all = slices.DeleteFunc(all, func(e sim.LogEntry) bool { return e.ID == "replayd/probe" })
	slices.SortFunc(all, func(a, b sim.LogEntry) int { return int(a.Arrival - b.Arrival) })
	return all
}

// A record is what the test reads of a line of replayd's records.
type record struct {
	ID       string `json:"id"`
	Outcome  string `json:"outcome"`
	Planned  int64  `json:"planned_ns"`
	Write    int64  `json:"write_ns"`
	First    int64  `json:"first_ns"`
	Last     int64  `json:"last_ns"`
	Lateness int64  `json:"lateness_ns"`
	Kernel   bool   `json:"kernel_time"`
	Input    int    `json:"input_tokens"`
	Chunks   int    `json:"chunks"`
	Merged   int    `json:"merged_reads"`
}

// recordFiles gives the content of each file of records, the oldest first. A compression that a kill cut short is no
// file yet, and its original is still there.
func (s *stage) recordFiles(t *testing.T) (files []string, compressed int) {
	t.Helper()
	for n := 1; ; n++ {
		old := fmt.Sprint(s.records, ".", n)
		b, err := os.ReadFile(old)
		if errors.Is(err, fs.ErrNotExist) {
			if b, err = os.ReadFile(old + ".gz"); errors.Is(err, fs.ErrNotExist) {
				break
			}
			compressed++
			if err == nil {
				b, err = unzip(b)
			}
		}
		if err != nil {
			t.Fatalf("%s: %v", old, err)
		}
		files = append(files, string(b))
	}
	slices.Reverse(files)
	b, err := os.ReadFile(s.records)
	if err != nil {
		t.Fatal(err)
	}
	return append(files, string(b)), compressed
}

func unzip(b []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// lines reads all records. Every line must be whole; only a kill may leave a torn one, the very last, and killed says
// that there was one since the daemon opened the file.
func (s *stage) lines(t *testing.T, killed bool) (all []record, torn bool) {
	t.Helper()
	files, compressed := s.recordFiles(t)
	for i, text := range files {
		whole, rest := "", text
		if end := strings.LastIndexByte(text, '\n') + 1; end > 0 {
			whole, rest = text[:end], text[end:]
		}
		if rest != "" {
			torn = true
			if !killed || i < len(files)-1 {
				t.Errorf("records, file %d of %d: want a newline at its end, got %q", i+1, len(files), rest)
			}
		}
		n := 0
		for line := range strings.Lines(whole) {
			n++
			var r record
			if err := json.Unmarshal([]byte(line), &r); err != nil || r.ID == "" {
				t.Errorf("records, file %d of %d, line %d: want a whole record, got %q: %v", i+1, len(files), n, line, err)
				continue
			}
			all = append(all, r)
		}
	}
	t.Logf("%d records in %d files, %d of them compressed", len(all), len(files), compressed)
	return all, torn
}

// A sent is one request as both sides saw it.
type sent struct {
	record
	engine   sim.LogEntry
	workload string
	due
}

// join pairs the engine's log with the records: each request that the one saw is in the other. A difference is a fault.
func (s *stage) join(t *testing.T, log []sim.LogEntry, records []record) (all []sent) {
	t.Helper()
	byID := map[string][]record{}
	for _, r := range records {
		byID[r.ID] = append(byID[r.ID], r)
	}
	for _, of := range byID {
		slices.SortFunc(of, func(a, b record) int { return int(a.Write - b.Write) })
	}
	for _, e := range log { // in order of arrival
		of := byID[e.ID]
		if len(of) == 0 {
			t.Errorf("%s: the engine saw it once more than there are records", e.ID)
			continue
		}
		x := sent{record: of[0], engine: e}
		x.workload, x.loop, x.row = outside.Place(t, e.ID)
		x.at = time.Unix(0, x.Planned)
		byID[e.ID] = of[1:]
		if way := time.Duration(e.Arrival - x.Write); way.Abs() > time.Second {
			t.Errorf("%s: written %v before it arrived", e.ID, way)
		}
		all = append(all, x)
	}
	for id, of := range byID {
		if len(of) > 0 {
			t.Errorf("%s: %d records of what the engine never saw: %s", id, len(of), of[0].Outcome)
		}
	}
	return all
}

// figures prints p50, p99 and the highest of some durations in µs.
func figures(t *testing.T, name string, all []time.Duration) {
	t.Helper()
	if len(all) == 0 {
		t.Logf("%-44s %7d", name, 0)
		return
	}
	all = slices.Sorted(slices.Values(all))
	us := func(d time.Duration) string { return strconv.FormatFloat(float64(d)/1e3, 'f', 0, 64) }
	t.Logf("%-44s %7d %10s %10s %10s", name, len(all), us(all[len(all)/2]), us(all[len(all)*99/100]), us(all[len(all)-1]))
}

func figuresHead(t *testing.T) {
	t.Helper()
	t.Logf("%-44s %7s %10s %10s %10s", "µs", "n", "p50", "p99", "max")
}
