//go:build peers

package export

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/internal/measure"
	"replayd/internal/result"
	"replayd/test/resulttest"
)

const ms = time.Millisecond

// recompute runs the script that recomputes all figures of a directory. It returns whether they are the same, and the
// output of the script.
func recompute(t *testing.T, dir string) (same bool, said string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "python3", "../../test/report/recompute.py", dir).CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited { //nolint:errorlint // as exec returns it
		t.Fatal(err)
	}
	return err == nil, string(out)
}

// writeRun writes the files and tables of a run into a directory.
func writeRun(t *testing.T, dir string, run result.Run) {
	t.Helper()
	var export []byte
	for _, r := range run.Rows {
		export = result.AppendExport(export, r)
	}
	if err := os.WriteFile(filepath.Join(dir, result.ExportName), export, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, w := range writers {
		var b bytes.Buffer
		if err := w.write(&b, run); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, w.name), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// An independent program computes the same figures for all files and tables, to the last digit.
func TestFiguresRecomputed(t *testing.T) {
	example := resulttest.Run(t)
	whole := *example.Ledger // its sessions are not those of its rows: real runs in test/peers have both
	whole.Sessions, example.Ledger, example.Sessions = measure.Sessions{}, &whole, nil
	plain := example
	plain.Rows = slices.Clone(example.Rows)
	for i := range plain.Rows {
		r := &plain.Rows[i]
		r.TTFT, r.Second, r.ITL, r.Gaps, r.First = math.NaN(), math.NaN(), math.NaN(), nil, 0
	}
	plain.Settings.Streamed, plain.Settings.GPUs, plain.Settings.Percentiles = false, 0, nil
	plain.Settings.SLO = measure.SLO{{Quantity: measure.E2E, Limit: 350}}
	ledger := *example.Ledger
	ledger.Good = 54
	plain.Ledger = &ledger
	failed := result.Run{Settings: resulttest.Settings, Rows: slices.DeleteFunc(slices.Clone(example.Rows), func(r result.Row) bool { return r.Outcome == measure.OK })}

	runs := map[string]result.Run{"example": example, "not streamed": plain, "nothing ok": failed}
	for _, seed := range []uint64{1, 2, 3} {
		runs["random "+string(rune('0'+seed))] = random(rand.New(rand.NewPCG(seed, 9)))
	}
	for name, run := range runs {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeRun(t, dir, run)
			if same, said := recompute(t, dir); !same {
				t.Error(said)
			}
		})
	}
}

// random returns a run of up to 2,000 requests with random settings and figures.
func random(r *rand.Rand) result.Run {
	s := result.Settings{
		Model: "m", Streamed: true, GPUs: r.IntN(9), Slice: time.Duration(1+r.IntN(20)) * 500 * ms,
		SLO: measure.SLO{{Quantity: measure.TPOT, Limit: r.Float64() * 30}, {Quantity: measure.E2E, Limit: r.Float64() * 3000}}, Percentiles: []float64{r.Float64() * 100},
	}
	c, err := result.NewCollector(s, result.CollectorOptions{Gaps: true})
	if err != nil {
		panic(err)
	}
	at := resulttest.Begin.UnixNano()
	for i := range r.IntN(2000) {
		at += int64(r.ExpFloat64() * 2e7)
		due := time.Unix(0, at)
		m := measure.Request{
			ID: "w/0/x", Outcome: measure.OK, InputTokens: r.IntN(5000), OutputTokens: r.IntN(40),
			Timeline: measure.Timeline{Due: due, Ready: due, Lane: due, Write: due.Add(time.Duration(r.IntN(1e6)))},
		}
		for sum := time.Duration(r.IntN(1e9)); len(m.Timeline.Chunks) < 1+i%40; sum += time.Duration(r.IntN(4e7)) {
			m.Timeline.Chunks = append(m.Timeline.Chunks, sum)
		}
		m.Usage.Output = len(m.Timeline.Chunks) + r.IntN(3)
		m.Usage.Source = measure.UsageCounted
		if i%10 > 0 {
			m.Usage.Source, m.Usage.Prompt = measure.UsageFinal, m.InputTokens+r.IntN(2)
		}
		m.Timeline.End = m.Timeline.Write.Add(time.Duration(r.IntN(3e9)))
		switch r.IntN(20) {
		case 0:
			m.Outcome, m.Status, m.Error = measure.HTTP5xx, 503, "overloaded"
		case 1:
			m.Outcome = measure.Cancelled
		case 2:
			m.Outcome, m.Error = measure.TimeoutStall, "no chunk for 30s"
		}
		c.Observe(&m)
	}
	return c.Collected()
}

// The script finds every kind of wrong figure. Otherwise TestFiguresRecomputed would prove nothing.
func TestRecomputeFindsWrongFigures(t *testing.T) {
	run := resulttest.Run(t)
	for _, c := range []struct{ file, figure string }{
		{result.JSONName, `"p99": (\d)`},
		{result.JSONName, `"other": (\d)`},
		{result.JSONName, `"median_off_percent": -(\d)`},
		{"table_aiperf.txt", `Prompts: .*\((\d)`},
		{result.JSONName, `"std": \d+\.(\d)`},
		{result.JSONName, `"count": (\d)`},
		{CSVName, `Goodput \(requests/sec\),0\.6(\d)`},
		{CSVName, `Lateness \(ms\),0\.9(\d)`},
		{SlicesCSVName, `1,Time to First Token,ms,p90,33(\d)`},
		{SlicesJSONName, `"tau": (\d)`},
		{SlicesJSONName, `"u": 20(\d)`},
		{SlicesJSONName, `"start_ns": 1(\d)`},
		{"table_aiperf.txt", `Request Latency \(ms\) │   35(\d)`},
		{"table_aiperf.txt", `tokens/sec\) │    17\.3(\d)`},
		{"table_aiperf.txt", `Success Rate: 9(\d)`},
		{"table_aiperf.txt", `, 105 ok, (\d)`},
		{result.JSONName, `"expected": 12(\d)`},
		{result.JSONName, `"ok": 10(\d)`},
		{result.JSONName, `"overload": (\d)`},
		{result.JSONName, `"good": 2(\d)`},
		{result.JSONName, `"eligible": 11(\d)`},
		{CSVName, `Attainment \(ratio\),0.2(\d)`},
		{"table_aiperf.txt", `Attainment: 2(\d)`},
		{"table_vllm.txt", `Service Attainment: 2(\d)`},
		{"table_aiperf.txt", `Per GPU: (\d)`},
		{"table_aiperf.txt", `Duration: 39\.9(\d)`},
		{"table_vllm.txt", `Median ITL \(ms\): +9\.5(\d)`},
		{"table_vllm.txt", `generated tokens: +69(\d)`},
		{"table_slices.txt", `2 \| +20-30s \| +3(\d)`},
		{"table_slices.txt", `variation: 6(\d)`},
		{"table_slices.txt", `U=203(\d)`},
		{result.ExportName, `"time_to_first_token":\{"value":3(\d)`},
		{result.ExportName, `"inter_token_latency":\{"value":(\d)`},
	} {
		dir := t.TempDir()
		writeRun(t, dir, run)
		path := filepath.Join(dir, c.file)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		at := regexp.MustCompile(c.figure).FindSubmatchIndex(b)
		if at == nil {
			t.Errorf("%s: %s is not there", c.file, c.figure)
			continue
		}
		b[at[2]] = '0' + (b[at[2]]-'0'+1)%10
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if same, said := recompute(t, dir); same || !strings.Contains(said, " differ") {
			t.Errorf("%s: %s changed: not found\n%s", c.file, c.figure, said)
		}
	}
}
