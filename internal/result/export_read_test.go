package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/measure"
	"replayd/internal/records"
)

// one returns the only run of a file.
func one(runs []Run, err error) (Run, error) {
	if err != nil {
		return Run{}, err
	}
	if len(runs) != 1 {
		return Run{}, fmt.Errorf("want 1 run, got %d", len(runs))
	}
	return runs[0], nil
}

// read reads a file of testdata.
func read(t *testing.T, name string) Run {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	run, err := one(ReadExport(bytes.NewReader(b), name))
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// Lines in AIPerf's format: ok with and without gaps, warm-up, a cancellation, errors of several kinds, other units.
func TestReadExportOfAIPerf(t *testing.T) {
	run := read(t, "aiperf_export.jsonl")
	nan := math.NaN()
	want := []Row{
		{
			ID: "warm", Correlation: "c0", Worker: "worker_1", Processor: "record_processor_1", Phase: measure.Warmup, Outcome: measure.OK,
			Start: 1763066700000000000, End: 1763066700200000000, First: 1763066700100000000,
			TTFT: 100, TTFAT: nan, Latency: 200, ITL: nan, Second: nan, Lateness: nan, Input: 10, Output: 1,
		},
		{
			ID: "abd8", Session: 87, Worker: "worker_b431129c", Processor: "record_processor_a1b2c3d4", Outcome: measure.OK,
			Start: 1763066701865462000, End: 1763066703082535666, First: 1763066702448122000,
			TTFT: 582.66, TTFAT: nan, Latency: 1210.008, ITL: 3.25, Second: nan, Lateness: nan, Input: 1000, Output: 194,
		},
		{
			ID: "7609", Session: 88, Correlation: "32ee", Conversation: "77aa", Turn: 2, Worker: "w", Processor: "p", Outcome: measure.OK,
			Credit: 1763066701900000000, Start: 1763066702000000000, Ack: 1763066702100000000, End: 1763066702300000000, First: 1763066702255886568,
			TTFT: 255.886568, TTFAT: 266.186568, Latency: 297.525228, ITL: 5.2048325, Second: 4.9, Lateness: nan, Gaps: []float64{4.9, 5.3}, Input: 550, Output: 12, Reasoning: 3,
		},
		{
			ID: "c35e", Session: 80, Turn: 0, Worker: "w", Processor: "p", Outcome: measure.Cancelled, Error: "RequestCancellationError: Request was cancelled after 0.000 seconds",
			Start: 1763066703000000000, End: 1763066703000600000, Cancel: 1763066703000600000,
			TTFT: nan, TTFAT: nan, Latency: nan, ITL: nan, Second: nan, Lateness: nan, Input: 550,
		},
		{
			ID: "e1", Worker: "w", Processor: "p", Outcome: measure.HTTP4xx, Status: 400, Error: "BadRequest: too long",
			Start: 1763066704000000000, End: 1763066704000600000, TTFT: nan, TTFAT: nan, Latency: nan, ITL: nan, Second: nan, Lateness: nan,
		},
		{
			ID: "e2", Worker: "w", Processor: "p", Outcome: measure.HTTP429, Status: 429, Error: "busy",
			Start: 1763066705000000000, End: 1763066705000600000, TTFT: nan, TTFAT: nan, Latency: nan, ITL: nan, Second: nan, Lateness: nan,
		},
		{
			ID: "e3", Worker: "w", Processor: "p", Outcome: measure.HTTP5xx, Status: 503, Error: "ServiceUnavailable: ",
			Start: 1763066706000000000, End: 1763066706000600000, TTFT: nan, TTFAT: nan, Latency: nan, ITL: nan, Second: nan, Lateness: nan,
		},
		{
			ID: "e4", Worker: "w", Processor: "p", Outcome: measure.TimeoutTotal, Error: "TimeoutError: 600 s",
			Start: 1763066707000000000, End: 1763066707000600000, TTFT: nan, TTFAT: nan, Latency: nan, ITL: nan, Second: nan, Lateness: nan,
		},
		{
			ID: "e5", Worker: "w", Processor: "p", Outcome: measure.ConnectFailed, Error: "ClientConnectorError: refused",
			Start: 1763066708000000000, End: 1763066708000600000, TTFT: nan, TTFAT: nan, Latency: nan, ITL: nan, Second: nan, Lateness: nan,
		},
		{
			ID: "e6", Worker: "w", Processor: "p", Outcome: measure.BadStream, Error: "InvalidInferenceResultError: nothing",
			Start: 1763066709000000000, End: 1763066709000600000, TTFT: nan, TTFAT: nan, Latency: nan, ITL: nan, Second: nan, Lateness: nan,
		},
		{
			ID: "units", Worker: "w", Processor: "p", Outcome: measure.OK,
			Start: 1763066710000000000, End: 1763066712000000000, First: 1763066710500000000,
			TTFT: 500, TTFAT: nan, Latency: 2000, ITL: 0.25, Second: nan, Lateness: nan,
		},
	}
	if diff := cmp.Diff(want, run.Rows, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if run.Partial != nil || !run.Settings.Streamed {
		t.Errorf("%v %v", run.Partial, run.Settings)
	}
}

// recorded returns the file of records of the requests that each observes.
func recorded(t *testing.T, each func(observe func(*measure.Request))) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "records.jsonl")
	sink := records.NewSink(prometheus.NewCounter(prometheus.CounterOpts{Name: "lost"}), slog.New(slog.DiscardHandler))
	if err := sink.Use(records.Options{Path: path}); err != nil {
		t.Fatal(err)
	}
	each(sink.Observe)
	if err := sink.Use(records.Options{}); err != nil { // flushes pending records
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// replayd's records give the same rows as its export, except for fields that only the export has.
func TestReadRecords(t *testing.T) {
	b := recorded(t, func(observe func(*measure.Request)) {
		for _, r := range example() {
			observe(r)
		}
	})
	got, err := one(ReadExport(bytes.NewReader(b), "records.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	want, _ := collected(t)
	if diff := cmp.Diff(want.Rows, got.Rows, cmpopts.EquateNaNs(), cmpopts.IgnoreFields(Row{}, "Gaps")); diff != "" {
		t.Errorf("collected − records:\n%s", diff)
	}
}

// A cut costs only the line in which it is, and Partial reports it. A missing last newline costs nothing.
func TestReadExportCut(t *testing.T) {
	_, file := collected(t)
	lines := bytes.SplitAfter(file, []byte("\n"))
	third := len(lines[0]) + len(lines[1]) + len(lines[2])
	for cut := third - 40; cut < third+40; cut++ {
		run, err := one(ReadExport(bytes.NewReader(file[:cut]), "x.jsonl"))
		whole := 3
		if cut < third-1 { // the third line lacks more than its newline
			whole = 2
		}
		partial := cut < third-1 || cut > third
		if err != nil || len(run.Rows) != whole || (run.Partial != nil) != partial {
			t.Fatalf("cut at %d of %d: %d rows, %v, %v", cut, third, len(run.Rows), run.Partial, err)
		}
		if partial && run.Partial[0] != fmt.Sprintf("x.jsonl:%d: cut in mid-line", whole+1) {
			t.Errorf("%v", run.Partial)
		}
	}
}

func TestReadExportFaults(t *testing.T) {
	good := `{"metadata":{"x_request_id":"a","request_start_ns":1,"request_end_ns":2},"metrics":null,"error":null}` + "\n"
	f := func(text string, rows int, partial []string, fault string) {
		t.Helper()
		run, err := one(ReadExport(strings.NewReader(text), "x"))
		if got := fmt.Sprint(err); len(run.Rows) != rows || got != fault && (fault == "" || !strings.HasPrefix(got, fault)) && (fault != "" || err != nil) {
			t.Errorf("%.80q: %d rows, want %d; error\n%v, want\n%s", text, len(run.Rows), rows, err, fault)
		}
		if diff := cmp.Diff(partial, run.Partial); diff != "" {
			t.Errorf("%.80q: %s", text, diff)
		}
	}
	f("", 0, nil, "")
	f("\n\n"+good, 1, nil, "")
	f(good+"garbage\n"+good, 2, []string{"x:2: no JSON"}, "")
	f(good+strings.Repeat("?\n", 12)+good, 2, append(numbered("x:%d: no JSON", 2, 11), "x: 2 more lines that cannot be read"), "")
	f("timestamp,tokens\n", 0, nil, "x: want a profile_export.jsonl or a file of records, got no line that is one: x:1: no JSON")
	f(`{"timestamp": 0, "input_length": 5}`, 0, nil, "x:1: want the metadata and metrics of a profile_export.jsonl or the id and outcome of a record, got neither")
	f(`{"id":"a","outcome":"maybe"}`, 0, nil, `x:1: outcome: want one of [ok `)
	f(`{"id":"a","outcome":"ok"}`, 0, nil, `x:1: want write_ns and end_ns, got neither`)
	f(`{"id":"a","outcome":"ok","end_ns":1,"phase":"later"}`, 0, nil, `x:1: phase: want warmup or profiling, got "later"`)
	f(`{"metadata":{}}`, 0, nil, "x:1: metadata: want request_start_ns and request_end_ns, got neither")
	f(`{"metadata":{"request_start_ns":1,"benchmark_phase":"x"}}`, 0, nil, `x:1: metadata: benchmark_phase: want warmup or profiling, got "x"`)
	f(`{"metadata":{"request_start_ns":1},"metrics":{"request_latency":{"value":1,"unit":"days"}}}`, 0, nil, `x:1: metrics: unit: want ms, sec, us or ns, got "days"`)
	f(`{"metadata":{"request_start_ns":-1}}`, 0, nil, `x:1: instants: want Unix time in ns from 0 to 4611686018427387904, got -1`)
	f(`{"metadata":{"request_start_ns":1},"metrics":{"request_latency":{"value":-0.5,"unit":"ms"}}}`, 0, nil, `x:1: times: want 0 to 1e+12 ms, got -0.5`)
	f(`{"metadata":{"request_start_ns":"x"}}`, 0, nil, `x:1: metadata.request_start_ns: want an integer, got text`)
	f(good+strings.Repeat(" ", maxLine)+"\n"+good, 2, []string{fmt.Sprintf("x:2: longer than %d bytes", maxLine)}, "")

	if _, err := ReadExport(io.MultiReader(strings.NewReader(good), iotest.ErrReader(io.ErrUnexpectedEOF)), "x"); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(err.Error(), "x:2: ") {
		t.Errorf("%v", err)
	}
}

// numbered returns one text for each line from first to last.
func numbered(format string, first, last int) (texts []string) {
	for i := first; i <= last; i++ {
		texts = append(texts, fmt.Sprintf(format, i))
	}
	return texts
}

func FuzzReadExport(f *testing.F) {
	for _, name := range []string{"aiperf_export.jsonl"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"id":"w/0/1","outcome":"ok","write_ns":5,"ttft_ns":1,"e2e_ns":9,"chunks":2,"usage_output_tokens":2}`))
	f.Add([]byte(told("w", "0/2", 0, 0, 0, 0) + record("w/0/0", 1) + told("w", "0/2", 0, 5, 1, 3) + told("w", "0/2", 9, 9, 0, 0) + record("w/0/0", 10)))
	f.Fuzz(func(t *testing.T, b []byte) {
		runs, err := ReadExport(bytes.NewReader(b), "x")
		if err != nil {
			return
		}
		if len(runs) == 0 {
			t.Error("no run and no error")
		}
		for _, run := range runs {
			if run.Ledger != nil && run.Ledger.Balance() != nil {
				t.Errorf("%+v: %v", run.Ledger, run.Ledger.Balance())
			}
			var again []byte
			for _, r := range run.Rows {
				again = AppendExport(again, r)
			}
			second, err := one(ReadExport(bytes.NewReader(again), "x"))
			if err != nil || len(second.Rows) != len(run.Rows) {
				t.Errorf("%d rows, then %d: %v", len(run.Rows), len(second.Rows), err)
			}
		}
	})
}

// Figures of reads are written to the file and read back.
func TestReadsInTheExport(t *testing.T) {
	for _, want := range []Row{{Reads: 7, Merged: 2, ReadDelay: 1.25}, {}, {Merged: 3}, {Retried: true}} {
		want.Start, want.ID = 1, "a/0/1"
		var line exportLine
		if err := json.Unmarshal(AppendExport(nil, want), &line); err != nil {
			t.Fatal(err)
		}
		got, err := line.row()
		if err != nil || got.Reads != want.Reads || got.Merged != want.Merged || got.ReadDelay != want.ReadDelay || got.Retried != want.Retried {
			t.Errorf("want %+v, got %+v, %v", want, got, err)
		}
	}
}
