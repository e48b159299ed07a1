package result

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"replayd/internal/measure"
)

// drawn returns a random request, with instants to the nanosecond.
func drawn(r *rand.Rand, n int) *measure.Request {
	due := time.Unix(1_700_000_000, r.Int64N(1e9)).Add(time.Duration(n) * time.Second)
	ready := due.Add(time.Duration(r.Int64N(2)) * time.Duration(r.Int64N(1e9)))
	m := &measure.Request{
		ID: "w/0/" + strconv.Itoa(n), Outcome: measure.OK, InputTokens: r.IntN(3), CountedInput: r.IntN(3),
		Usage:    measure.Usage{Prompt: r.IntN(100), Output: r.IntN(5)},
		Timeline: measure.Timeline{Due: due, Ready: ready, Lane: ready, Write: ready.Add(time.Duration(r.IntN(1e8))), Whole: r.IntN(5) == 0},
	}
	t := &m.Timeline
	for range 1 + r.IntN(4) {
		last := time.Duration(0)
		if len(t.Chunks) > 0 {
			last = t.Chunks[len(t.Chunks)-1]
		}
		t.Chunks = append(t.Chunks, last+time.Duration(r.Int64N(2)*r.Int64N(1e9)))
		if t.Whole {
			break
		}
	}
	m.Usage.Reasoning = r.IntN(m.Usage.Output + 1)
	t.End = t.Write.Add(t.Chunks[len(t.Chunks)-1])
	switch r.IntN(8) {
	case 0:
		m.Outcome, m.Status = measure.HTTP5xx, 503
	case 1:
		m.Outcome = measure.Cancelled
	}
	return m
}

// A request has the same values live and read back from an export or the records, to the last bit.
func TestValuesAreTheSameReadBack(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	live := map[string]measure.Values{}
	var export []byte
	var c wallClock
	records := recorded(t, func(observe func(*measure.Request)) {
		for n := range 2000 {
			m := drawn(r, n)
			live[m.ID] = m.Values()
			row := c.row(m, "p", false)
			export = AppendExport(export, row)
			observe(m)
		}
	})
	for name, file := range map[string][]byte{"export": export, "records": records} {
		run, err := one(ReadExport(bytes.NewReader(file), name))
		if err != nil || len(run.Rows) != len(live) {
			t.Fatalf("%s: %d rows, %v", name, len(run.Rows), err)
		}
		for _, row := range run.Rows {
			if diff := cmp.Diff(live[row.ID], row.Values(), cmpopts.EquateNaNs()); diff != "" {
				t.Fatalf("%s: %s, -live +read back\n%s", name, row.ID, diff)
			}
		}
	}
}

// An answer of one token has no TPOT and keeps a bound on TPOT. The figures of the files count it as good too.
func TestUndefinedBoundIsKept(t *testing.T) {
	one := Row{Outcome: measure.OK, Start: 1, End: 1e9, TTFT: 100, Latency: 100, ITL: math.NaN(), Second: math.NaN(), Lateness: 0, Output: 1}
	f := Aggregate([]Row{one, one}, Settings{SLO: measure.SLO{{Quantity: measure.TTFT, Limit: 2000}, {Quantity: measure.TPOT, Limit: 50}, {Quantity: measure.PerUser, Limit: 1e6}}})
	if m, _ := f.Metric("good_request_count"); m.Value != 2 {
		t.Errorf("%v good, want both", m.Value)
	}
	if m, _ := f.Metric("good_request_fraction"); m.Value != 1 {
		t.Errorf("a share of %v, want 1", m.Value)
	}
}

// AIPerf has bounds that replayd does not know. Such a bound judges nothing, and the report says so.
func TestUnknownBoundOfAIPerf(t *testing.T) {
	run, err := ReadJSON(strings.NewReader(`{"input_config":{"input":{"goodput":{"inter_chunk_latency":5,"request_latency":648}}}}`), "x.json")
	if err != nil || run.Settings.SLO.String() != "e2e:648ms" {
		t.Errorf("got %v, %v", run.Settings.SLO, err)
	}
	if want := `x.json: no request is judged by the bound on "inter_chunk_latency": want one of ttft `; len(run.Partial) != 1 || !strings.HasPrefix(run.Partial[0], want) {
		t.Errorf("want %q, got %q", want, run.Partial)
	}
}
