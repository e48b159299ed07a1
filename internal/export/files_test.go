package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"

	"replayd/internal/measure"
	"replayd/internal/result"
	"replayd/test/resulttest"
)

// writers lists all files and tables of a run.
var writers = []struct {
	name  string
	write func(io.Writer, result.Run) error
}{
	{CSVName, WriteCSV},
	{result.JSONName, WriteJSON},
	{SlicesCSVName, WriteSlicesCSV},
	{SlicesJSONName, WriteSlicesJSON},
	{ServerMetricsName, WriteServerMetrics},
	{"table_aiperf.txt", func(w io.Writer, r result.Run) error { return WriteAIPerfTable(w, r, 0) }},
	{"table_aiperf_80.txt", func(w io.Writer, r result.Run) error { return WriteAIPerfTable(w, r, 80) }},
	{"table_vllm.txt", WriteVLLMTable},
	{"table_slices.txt", WriteSlices},
	{"table_beside.txt", func(w io.Writer, r result.Run) error { return WriteServerSeries(w, r, 0) }},
}

func TestFiles(t *testing.T) {
	run := resulttest.Run(t)
	for _, w := range writers {
		var b bytes.Buffer
		if err := w.write(&b, run); err != nil {
			t.Fatalf("%s: %v", w.name, err)
		}
		resulttest.Golden(t, "run/"+w.name, b.Bytes())
		if strings.HasSuffix(w.name, ".json") && !json.Valid(b.Bytes()) {
			t.Errorf("%s is no JSON", w.name)
		}
	}
}

// A run without streaming has no TTFT and no gaps. A run without
// ok requests has only counts. An empty run breaks nothing.
func TestFilesOfPoorRuns(t *testing.T) {
	plain, none := result.Run{}, result.Run{}
	for _, r := range resulttest.Run(t).Rows {
		r.TTFT, r.Second, r.ITL, r.Gaps, r.First = math.NaN(), math.NaN(), math.NaN(), nil, 0
		plain.Rows = append(plain.Rows, r)
		if r.Outcome != measure.OK {
			none.Rows = append(none.Rows, r)
		}
	}
	plain.Settings = result.Settings{Slice: 20 * time.Second}
	for name, run := range map[string]result.Run{"plain": plain, "none": none, "empty": {}} {
		for _, w := range writers {
			var b bytes.Buffer
			if err := w.write(&b, run); err != nil {
				t.Errorf("%s: %s: %v", name, w.name, err)
			}
			if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
				t.Errorf("%s: %s: %s", name, w.name, &b)
			}
			if strings.HasPrefix(w.name, "table_") && name != "empty" {
				resulttest.Golden(t, name+"_"+w.name, b.Bytes())
			}
		}
	}
}

// The order in which shards are merged does not change a digit.
func TestFilesDoNotDependOnOrder(t *testing.T) {
	run := resulttest.Run(t)
	var shards [3]result.Run
	for i, r := range run.Rows {
		shards[i%3].Rows = append(shards[i%3].Rows, r)
	}
	merged, err := result.MergeShards([]result.Run{shards[2], shards[0], shards[1]})
	if err != nil {
		t.Fatal(err)
	}
	turned := run
	turned.Rows = merged.Rows
	for _, w := range writers {
		var a, b bytes.Buffer
		if err := errors.Join(w.write(&a, run), w.write(&b, turned)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(a.String(), b.String()); diff != "" {
			t.Errorf("%s:\n%s", w.name, diff)
		}
	}
}

func TestReadJSONGivesTheSettings(t *testing.T) {
	run := resulttest.Run(t)
	var b bytes.Buffer
	if err := WriteJSON(&b, run); err != nil {
		t.Fatal(err)
	}
	got, err := result.ReadJSON(&b, result.JSONName)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(result.Run{Settings: run.Settings, Ledger: run.Ledger, Cache: run.Cache}, got); diff != "" {
		t.Errorf("-wrote +read:\n%s", diff)
	}
	if _, err := result.ReadJSON(strings.NewReader("metric,avg\n"), "x.json"); err == nil || !strings.HasPrefix(err.Error(), "x.json: want a profile_export_aiperf.json: ") {
		t.Errorf("%v", err)
	}
}

func TestXLSX(t *testing.T) {
	run := resulttest.Run(t)
	var b bytes.Buffer
	if err := WriteXLSX(&b, run); err != nil {
		t.Fatal(err)
	}
	book, err := excelize.OpenReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	if diff := cmp.Diff([]string{"summary", "requests"}, book.GetSheetList()); diff != "" {
		t.Error(diff)
	}
	var text strings.Builder
	for _, sheet := range book.GetSheetList() {
		rows, err := book.GetRows(sheet, excelize.Options{RawCellValue: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			text.WriteString(strings.Join(row, "|") + "\n")
		}
		if sheet == "requests" && len(rows) != 1+len(run.Rows) {
			t.Errorf("%d lines of requests, want %d", len(rows), 1+len(run.Rows))
		}
	}
	resulttest.Golden(t, "run/"+XLSXName+".txt", []byte(text.String()))
}

type full struct{}

var errFull = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestFilesSayThatTheyCannotBeWritten(t *testing.T) {
	run := resulttest.Run(t)
	for _, w := range writers {
		if err := w.write(full{}, run); !errors.Is(err, errFull) {
			t.Errorf("%s: want %v, got %v", w.name, errFull, err)
		}
	}
	if err := WriteXLSX(full{}, run); !errors.Is(err, errFull) {
		t.Errorf("XLSX: want %v, got %v", errFull, err)
	}
}

// Every run that can be read can be reported.
func FuzzFiles(f *testing.F) {
	for _, path := range []string{"aiperf_export.jsonl", "run/" + result.ExportName} {
		b, err := os.ReadFile("../result/testdata/" + path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"id":"w/0/1","outcome":"ok","write_ns":5,"ttft_ns":1,"e2e_ns":9,"chunks":2,"usage_output_tokens":2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		runs, err := result.ReadExport(bytes.NewReader(b), "x")
		if err != nil {
			return
		}
		for _, run := range runs {
			run.Settings = resulttest.Settings
			for _, w := range writers {
				if err := w.write(io.Discard, run); err != nil {
					t.Errorf("%s: %v", w.name, err)
				}
			}
		}
	})
}
