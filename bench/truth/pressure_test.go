//go:build bench && linux

package truth_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"replayd/bench/lab"
	"replayd/bench/rig"
	"replayd/test/outside"
)

// A pressure is a disturbance of replayd while it plays a load.
type pressure struct {
	name   string
	busy   bool // another process takes a core
	large  int  // one of this many bodies has 0.8 MB; 0: none
	scrape bool // its page is scraped every second
}

// largeTokens is the number of tokens in about 0.8 MB of text.
const largeTokens = 125_000

// TestPressure shows lateness and chunk errors while another process takes a core, with bodies of 0.8 MB, and with a
// scrape a second, compared with the same load alone.
func TestPressure(t *testing.T) {
	size := rig.ReadSize(t)
	l := load{streams: 100, itl: 10 * time.Millisecond}
	if size.Full {
		l.streams = 300
	}
	steal := rig.WatchSteal(t)
	all := []pressure{
		{name: "none"},
		{name: "a core taken", busy: true},
		{name: "a body in 20 of 0.8 MB", large: 20},
		{name: "a scrape a second", scrape: true},
	}
	rounds := make([][]pressed, len(all))
	for range size.Rounds {
		for i, p := range all {
			rounds[i] = append(rounds[i], p.play(t, l, size.Slice, steal))
		}
	}
	steal.Stop()
	table := &lab.Table{
		Title: fmt.Sprintf("%d streams at %v under pressure, µs:", l.streams, l.itl),
		Head: []string{
			"pressure", "requests", "clean: lateness p50", "p90", "p99", "chunk error p50", "p90", "p99",
			"all: lateness p50", "p90", "p99", "chunk error p50", "p90", "p99", "clean, %",
		},
	}
	for i, p := range all {
		p.add(table, rounds[i], "all", func(s pressed) both { return s.requests })
		if p.large > 0 {
			p.add(table, rounds[i], "of 0.8 MB", func(s pressed) both { return s.larges })
		}
	}
	table.Note("Medians of %d rounds of %v, interleaved. Chunk error: client − server. Clean: without steal in the slices of 100 ms around.", size.Rounds, size.Slice)
	rig.Results(t, "pressure", steal, table)
}

// An offset holds lateness and chunk errors in µs.
type offset struct{ lateness, chunk lab.Sample }

// both has the offset of all requests, and of those without steal.
type both [2]offset

func (b *both) add(ns int64, clean bool, to func(*offset) *lab.Sample) {
	for i := range b {
		if s := to(&b[i]); i == 0 || clean {
			*s = append(*s, float64(ns)/1e3)
		}
	}
}

// pressed is the result of a slice.
type pressed struct{ requests, larges both }

func (p pressure) add(table *lab.Table, rounds []pressed, what string, of func(pressed) both) {
	cells := []string{p.name, what}
	for _, i := range []int{1, 0} {
		var lateness, chunk []lab.Sample
		for _, s := range rounds {
			lateness, chunk = append(lateness, of(s)[i].lateness), append(chunk, of(s)[i].chunk)
		}
		cells = append(append(cells, micros(lateness)...), micros(chunk)...)
	}
	var shares []float64
	for _, s := range rounds {
		shares = append(shares, 100*float64(len(of(s)[1].chunk))/float64(len(of(s)[0].chunk)))
	}
	table.Add(append(cells, lab.Number(lab.Median(shares...)))...)
}

// play plays the load with replayd and compares the records with the server's stamps.
func (p pressure) play(t *testing.T, l load, slice time.Duration, steal *lab.Steal) pressed {
	t.Helper()
	n := l.requests(slice)
	var trace strings.Builder
	for i := range n {
		input := 25
		if p.large > 0 && i%p.large == p.large-1 {
			input = largeTokens
		}
		fmt.Fprintf(&trace, `{"timestamp":0,"input_length":%d,"output_length":%d}`+"\n", input, tokens)
	}
	s := rig.Serve(t, rig.Options{}, "--ttft", ttft.String(), "--itl", l.itl.String())
	within := slice + time.Minute
	if p.busy {
		free := takeCore(t, within)
		defer free()
	}
	artifacts, listen := filepath.Join(t.TempDir(), "artifacts"), outside.Address(t)
	args := []string{
		"--arrival", "constant", "--rate", fmt.Sprint(1 / l.spacing().Seconds()), "--lanes", fmt.Sprint(2 * l.streams),
		"--artifact-dir", artifacts, "--export-gaps", "--web.listen-address", listen,
	}
	scraped := func() {}
	if p.scrape {
		scraped = scrapeEachSecond(t, "http://"+listen)
	}
	path := runRecords(t, s, trace.String(), within, args...)
	scraped()
	records, stamps := readRecords(t, path, n, tokens), s.Stamps(t)
	matched(t, records, stamps, tokens)
	seen := map[string]lab.Seen{}
	for _, e := range readExport(t, filepath.Join(artifacts, "profile_export.jsonl")) {
		seen[e.ID] = e
	}
	var of pressed
	for _, r := range records[l.streams:] { // the first requests open the connections
		to := []*both{&of.requests}
		if p.large > 0 && r.Row%p.large == p.large-1 {
			to = append(to, &of.larges)
		}
		if len(seen[r.ID].Chunks) != tokens {
			t.Fatalf("%s: want the time of %d chunks, got %d", r.ID, tokens, len(seen[r.ID].Chunks))
		}
		for _, b := range to {
			b.add(r.Lateness, steal.Clean(r.Ready, r.Write), func(o *offset) *lab.Sample { return &o.lateness })
			for i, ns := range seen[r.ID].Chunks {
				sent := stamps[r.ID].Chunks[i]
				b.add(ns-sent, steal.Clean(sent, ns), func(o *offset) *lab.Sample { return &o.chunk })
			}
		}
	}
	return of
}
