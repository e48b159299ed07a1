//go:build bench && linux

package limits_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"replayd/bench/lab"
	"replayd/bench/rig"
	"replayd/test/outside"
)

// azure2024 is the number of rows of Azure's trace of 2024, code and conversation services together
// (AzureLLMInferenceTrace_code_1week.csv and …_conv_1week.csv of AzurePublicDataset).
const azure2024 = 44_107_694

// TestGrowth reads traces of many sizes, each in a process of its own: the real trace repeated 10, 100 and 1,000 times,
// and as many rows like Azure's as its trace of 2024 has.
func TestGrowth(t *testing.T) {
	path := filepath.Join(os.Getenv("REPLAYD_TRACES"), "mooncake_conversation.jsonl")
	if os.Getenv("REPLAYD_TRACES") == "" {
		t.Skip("REPLAYD_TRACES does not name the folder of the traces")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := rig.ReadSize(t)
	reader := rig.Program("growth")
	times, azure := []int{1, 10}, azure2024/100
	if s.Full {
		times, azure = []int{1, 10, 100, 1000}, azure2024
	}
	azure = outside.Knob(t, "BENCH_ROWS", azure, strconv.Atoi)
	steal := rig.WatchSteal(t)
	table := &lab.Table{
		Title: "A trace of many rows: checked whole, then a plan made of it, then every row read in due order. RAM is the most that the process had, " +
			"by when the first row was there and by the end.",
		Head: []string{"trace", "rows", "MB", "check s", "rows/s", "plan ms", "first row ms", "read s", "rows/s", "RAM MiB", "at the end", "B a row"},
	}
	var small reading
	for _, n := range times {
		got := grow(t, reader, n*bytes.Count(text, []byte("\n")), func(w *bufio.Writer) { repeat(t, w, text, n) })
		if n == 1 {
			small = got
		}
		got.row(table, fmt.Sprintf("Mooncake's × %d", n), small)
	}
	for _, n := range []int{azure / 100, azure} {
		got := grow(t, reader, n, func(w *bufio.Writer) { azureRows(w, n) })
		if n < azure {
			small = got
		}
		got.row(table, "as Azure's", small)
	}
	table.Note("B a row: RAM at the end beyond that of the smallest of its kind, by row. Copies of Mooncake's trace have its ids, so that the tree of prefixes stays as it is.")
	rig.Results(t, "growth", steal, table)
}

// A reading is the output of bench/limits/growth.
type reading struct {
	Rows, Bytes              int64
	Check, Plan, First, Read time.Duration
	Checked, Whole           int64 // peak memory in bytes so far
}

func (r reading) row(t *lab.Table, name string, small reading) {
	perRow := "–"
	if r.Rows > small.Rows {
		perRow = lab.Number(float64(r.Whole-small.Whole) / float64(r.Rows-small.Rows))
	}
	const mib = 1 << 20
	t.Add(name, strconv.FormatInt(r.Rows, 10), lab.Number(float64(r.Bytes)/1e6),
		lab.Number(r.Check.Seconds()), lab.Number(float64(r.Rows)/r.Check.Seconds()), lab.Number(r.Plan.Seconds()*1e3), lab.Number(r.First.Seconds()*1e3),
		lab.Number(r.Read.Seconds()), lab.Number(float64(r.Rows)/r.Read.Seconds()),
		lab.Number(float64(r.Checked)/mib), lab.Number(float64(r.Whole)/mib), perRow)
}

// grow writes a trace and reads it with reader.
func grow(t *testing.T, reader string, rows int, write func(*bufio.Writer)) (got reading) {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "rows")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(file.Name()) // now, because there are several, of gigabytes
	w := bufio.NewWriterSize(file, 1<<20)
	write(w)
	if err := errors.Join(w.Flush(), file.Close()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, reader, file.Name()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got.Rows != int64(rows) {
		t.Errorf("want %d rows read, got %d", rows, got.Rows)
	}
	return got
}

// repeat writes a Mooncake trace several times, each 3 s after the last row of the one before.
func repeat(t *testing.T, w *bufio.Writer, text []byte, times int) {
	t.Helper()
	head := []byte(`{"timestamp": `)
	length := 0
	for n := range times {
		base, last := n*length, 0
		for line := range bytes.Lines(text) {
			rest, ok := bytes.CutPrefix(line, head)
			number, rest, comma := bytes.Cut(rest, []byte(","))
			at, err := strconv.Atoi(string(number))
			if !ok || !comma || err != nil {
				t.Fatalf("want a line that begins with %s and a number, got %s", head, line)
			}
			last = at
			_, _ = w.Write(head) // Flush returns any error
			_, _ = w.Write(strconv.AppendInt(w.AvailableBuffer(), int64(base+at), 10))
			_ = w.WriteByte(',')
			_, _ = w.Write(rest)
		}
		if n == 0 {
			length = last + 3000
		}
	}
}

// azureRows writes rows in the format of Azure's traces, with their
// fractions of a second: 73 a second, as in the week of 2024.
func azureRows(w *bufio.Writer, rows int) {
	_, _ = w.WriteString("TIMESTAMP,ContextTokens,GeneratedTokens\n")
	at := time.Date(2024, 5, 10, 0, 0, 0, 0, time.UTC)
	for i := range rows {
		b := at.Add(time.Duration(i)*13_700*time.Microsecond).AppendFormat(w.AvailableBuffer(), "2006-01-02 15:04:05.0000000")
		b = append(b, ',')
		b = strconv.AppendInt(b, int64(1+i*7919%4096), 10)
		b = append(b, ',')
		b = strconv.AppendInt(b, int64(1+i*104729%700), 10)
		_, _ = w.Write(append(b, '\n')) // Flush returns any error
	}
}
