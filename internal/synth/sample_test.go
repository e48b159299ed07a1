package synth

import (
	"bytes"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"testing"
	"time"

	"replayd/internal/trace"
)

var update = flag.Bool("update", false, "rewrite sample.jsonl")

// mooncake returns the rows as a file in Mooncake's format.
func mooncake(t *testing.T, rows []trace.Record) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := trace.NewWriter(&out, trace.Mooncake, trace.WriterOptions{})
	for i := range rows {
		err = errors.Join(err, w.Write(&rows[i]))
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestSampleIsWhatItsSeedMakes(t *testing.T) {
	got := mooncake(t, Demo.Records(sampleSeed))
	if *update {
		if err := os.WriteFile("sample.jsonl", got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(got, Sample) {
		t.Error("sample.jsonl is not what the generator makes; if that is meant, run go test -update")
	}
}

// The demo needs these bounds: requests from the start, a loop of three minutes, a load for a laptop.
func TestSampleAsATrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sample.jsonl")
	if err := os.WriteFile(path, Sample, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := trace.Open(t.Context(), path, trace.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	s := f.Stats
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	within := func(what string, got, low, high float64) {
		t.Helper()
		if !(got >= low && got <= high) {
			t.Errorf("%s: %v, want %v to %v", what, got, low, high)
		}
	}
	within("rows", float64(s.Requests), 300, 1000)
	within("first row, s", s.First.Seconds(), 0, 0)
	within("span, s", s.Span.Seconds(), 150, 170)
	within("block tokens", float64(s.BlockTokens), 512, 512)
	within("sessions of several turns", float64(s.Sessions), 50, 500)
	within("hit ratio by tokens", s.Prefix.HitTokenRatio, 0.3, 0.8)
	within("ids behind several prefixes, or of several lengths", float64(s.Prefix.Moved+s.Prefix.Resized), 0, 0)
	within("variation of the gaps: a Poisson process has 1, bursts more", s.GapCV, 1.1, 3)
	if len(s.Warnings) > 0 || !s.Sorted {
		t.Errorf("sorted %v, warnings %q", s.Sorted, s.Warnings)
	}
	rows := Demo.Records(sampleSeed)
	input, output, early := []int{}, []int{}, 0
	for _, r := range rows {
		input, output = append(input, r.InputTokens), append(output, r.OutputTokens)
		if r.Offset < 5*time.Second {
			early++
		}
	}
	sort.Ints(input)
	sort.Ints(output)
	within("rows in the first 5 s", float64(early), 5, 100)
	within("median input", float64(input[len(input)/2]), 1000, 2000)
	within("longest input", float64(input[len(input)-1]), 8000, 16_384)
	within("median output", float64(output[len(output)/2]), 60, 100)
	within("longest output", float64(output[len(output)-1]), 300, 600)
}

func TestTurnsGrow(t *testing.T) {
	last := map[string]trace.Record{}
	turns, shared := 0, 0
	roots := map[uint64]int{}
	for i, r := range Demo.Records(7) {
		if r.Number != i || r.Offset < 0 || r.Offset >= Demo.Span || r.InputTokens > Demo.MaxInput {
			t.Fatalf("row %d: %+v", i, r)
		}
		if want := (r.InputTokens + 511) / 512; len(r.Blocks) != want {
			t.Fatalf("row %d of %d tokens has %d ids, want %d", i, r.InputTokens, len(r.Blocks), want)
		}
		if roots[r.Blocks[0]]++; roots[r.Blocks[0]] > 1 {
			shared++
		}
		before, ok := last[r.Session]
		last[r.Session] = r
		if !ok || r.Session == "" {
			continue
		}
		turns++
		if grown := before.InputTokens + before.OutputTokens; r.InputTokens <= grown || r.Offset <= before.Offset {
			t.Errorf("row %d: %d tokens at %v, after a turn with %d at %v", i, r.InputTokens, r.Offset, grown, before.Offset)
		}
		if full := before.InputTokens / 512; !slices.Equal(r.Blocks[:full], before.Blocks[:full]) {
			t.Errorf("row %d has not the %d full blocks of the turn before", i, full)
		}
	}
	if turns < 100 || shared < 200 {
		t.Errorf("%d later turns, %d rows with a known first block, want 100 and 200 at least", turns, shared)
	}
}

// The median of a lognormal distribution is Median, and 15.87 % of its values exceed Median · e^Sigma.
func TestLengthsAreLognormal(t *testing.T) {
	s := Demo
	s.Span, s.SessionGap, s.AnotherTurn, s.SystemShare = time.Hour, 100*time.Millisecond, 0, 0
	s.Message.Max, s.MaxInput = math.MaxInt32, math.MaxInt32
	above, beyond := 0, 0
	rows := s.Records(3)
	for _, r := range rows {
		if r.InputTokens > s.Message.Median {
			above++
		}
		if float64(r.InputTokens) > float64(s.Message.Median)*math.Exp(s.Message.Sigma) {
			beyond++
		}
	}
	// For 36,000 rows the standard deviation is 0.26 % for the first share and 0.19 % for the other. Four of them
	// are allowed.
	n := float64(len(rows))
	if a, b := float64(above)/n, float64(beyond)/n; math.Abs(a-0.5) > 0.0106 || math.Abs(b-0.1587) > 0.0077 {
		t.Errorf("of %v rows %.4f are above the median, %.4f beyond a deviation; want 0.5 and 0.1587", n, a, b)
	}
	if mean := s.Span.Seconds() / n; n < 36_000 || mean > 0.1 {
		t.Errorf("%v conversations in an hour, want more than one in 100 ms", n)
	}
}

func TestSeedsDiffer(t *testing.T) {
	a, b := Demo.Records(1), Demo.Records(2)
	if len(a) == len(b) && slices.EqualFunc(a, b, func(a, b trace.Record) bool { return a.InputTokens == b.InputTokens }) {
		t.Error("two seeds give one trace")
	}
}
