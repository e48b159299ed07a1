package result

import (
	"bytes"
	"context"
	"flag"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"replayd/internal/measure"
	"replayd/internal/secret"
	"replayd/test/machine"
)

var update = flag.Bool("update", false, "rewrite golden files")

const ms = time.Millisecond

// begin is the due time of the example's first request.
var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// settings are the settings of the example.
var settings = Settings{
	Command: "replayd run trace.jsonl", Model: "qwen3-0.6b", Endpoint: "chat", Concurrency: 8, GPUs: 2, Slice: 10 * time.Second,
	SLO:         measure.SLO{{Quantity: measure.TTFT, Limit: 300}, {Quantity: measure.TPOT, Limit: 9.5}, {Quantity: measure.PerUser, Limit: 95}},
	Percentiles: []float64{75, 99.9}, Streamed: true,
}

// example returns the requests of a run, as measured: 3 warm-up requests and 120 others over 40 s. The first 10 s are
// slower; two in three requests belong to conversations; some are refused for their length, one cannot be sent, some
// are cancelled, and one has one token. Half of the prompts are 9 tokens longer than asked, one answer in five is 4
// tokens shorter.
func example() []*measure.Request {
	random := rand.New(rand.NewPCG(7, 7))
	var all []*measure.Request
	for i := range 123 {
		due := begin.Add(time.Duration(i-3) * time.Second / 3)
		write := due.Add(time.Duration(random.IntN(2_000_000)))
		ttft := 150*ms + time.Duration(random.IntN(200_000_000))
		if i < 30 {
			ttft += 180 * ms
		}
		r := &measure.Request{
			ID: "w/0/" + strconv.Itoa(i), Row: i, Lane: i % 8, Outcome: measure.OK, Status: 200, InputTokens: 500 + random.IntN(9000),
			Timeline: measure.Timeline{Planned: due, Due: due, Ready: due, Lane: due, Write: write, Head: write.Add(ttft - 10*ms)},
		}
		if i%7 == 3 {
			r.Timeline.Connect = write.Sub(due) / 2
		}
		if i%3 > 0 {
			r.Session, r.Turn = "s"+strconv.Itoa(i/9), i%9-i%9/3-1
		}
		if i < 3 {
			r.Phase = measure.Warmup
		}
		r.Usage = measure.Usage{Output: 1 + random.IntN(12), Source: measure.UsageFinal}
		r.Usage.Prompt = r.InputTokens + 9*(i%2)
		r.OutputTokens = r.Usage.Output
		if i%5 == 2 { // it ended early
			r.OutputTokens += 4
		}
		if i%10 == 5 {
			r.Usage.Reasoning = r.Usage.Output / 2
		}
		at := ttft
		for range r.Usage.Output {
			r.Timeline.Chunks = append(r.Timeline.Chunks, at)
			at += 7*ms + time.Duration(random.IntN(5_000_000))
		}
		r.Timeline.End = write.Add(at)
		switch {
		case i%17 == 4:
			fail(r, measure.HTTP4xx, 400, "This model's maximum context length is 32768 tokens, and you asked for "+strconv.Itoa(32768+i)+".")
		case i == 50:
			fail(r, measure.HTTP429, 429, "busy")
		case i == 60:
			*r = measure.Request{
				ID: r.ID, Row: i, Outcome: measure.ConnectFailed, Error: "connect: connection refused", InputTokens: r.InputTokens,
				Timeline: measure.Timeline{Planned: due, Due: due, Ready: due, Lane: due, End: due.Add(ms)},
			}
		case i%20 == 11:
			r.Outcome, r.Error, r.Timeline.Chunks = measure.Cancelled, "cancelled after 500ms", r.Timeline.Chunks[:1]
			r.Timeline.Cancel = write.Add(500 * ms)
			r.Timeline.End = r.Timeline.Cancel
		}
		all = append(all, r)
	}
	return all
}

func fail(r *measure.Request, o measure.Outcome, status int, text string) {
	r.Outcome, r.Status, r.Error, r.Usage = o, status, secret.Text(text), measure.Usage{}
	r.Timeline.Chunks, r.Timeline.End = nil, r.Timeline.Head
}

// collected returns the example as a Collector collects it, and the file that the Collector wrote.
func collected(t *testing.T) (Run, []byte) {
	path := filepath.Join(t.TempDir(), ExportName)
	var run Run
	synctest.Test(t, func(t *testing.T) {
		c, err := NewCollector(settings, CollectorOptions{Processor: "replayd", Path: path, Gaps: true, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		for _, r := range example() {
			c.Observe(r)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		run = c.Collected()
	})
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return run, file
}

// golden compares got with a file in testdata, or writes the file with -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestExportFile(t *testing.T) {
	_, file := collected(t)
	golden(t, "run/"+ExportName, file)
}

// The rows read from the file equal the collected ones, to the last bit.
func TestReadExportGivesWhatWasCollected(t *testing.T) {
	want, file := collected(t)
	got, err := one(ReadExport(bytes.NewReader(file), ExportName))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Rows, got.Rows, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("collected − read:\n%s", diff)
	}
	if len(want.Rows) != 123 || len(want.Measured()) != 120 || !got.Settings.Streamed || got.Partial != nil {
		t.Errorf("%d rows, %d measured, %+v", len(want.Rows), len(want.Measured()), got.Partial)
	}
}

// A request's line is in the file a second after its end, while the run goes on.
func TestExportWhileItGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), ExportName)
	synctest.Test(t, func(t *testing.T) {
		c, err := NewCollector(settings, CollectorOptions{Processor: "replayd", Path: path, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		c.Observe(example()[3])
		wait(time.Second)
		if b, err := os.ReadFile(path); err != nil || bytes.Count(b, []byte("\n")) != 1 || bytes.Contains(b, []byte("inter_chunk_latency")) {
			t.Errorf("want one line without gaps, got %q, %v", b, err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestCollectorWithoutAFile(t *testing.T) {
	c, err := NewCollector(Settings{}, CollectorOptions{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	c.Observe(example()[3])
	if run := c.Collected(); len(run.Rows) != 1 || run.Rows[0].Gaps != nil || run.Partial != nil {
		t.Errorf("%+v", run)
	}
	if _, err := NewCollector(Settings{}, CollectorOptions{Path: t.TempDir(), Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("a directory is opened as a file")
	}
}

// The distances between the instants of a run are those of the monotonic clock. A step of the wall clock does not
// change them.
func TestInstantsKeepTheirDistance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c wallClock
		start := time.Now()
		if got := c.ns(start); got != start.UnixNano() {
			t.Errorf("%d, want %d", got, start.UnixNano())
		}
		wait(time.Second)
		if got := c.ns(time.Now()) - c.ns(start); got != int64(time.Second) {
			t.Errorf("%d ns apart, want 1 s", got)
		}
		if c.ns(time.Time{}) != 0 {
			t.Error("an instant that did not come is not 0")
		}
	})
}

// An answer that is not streamed has a latency and nothing else: no first token, no gap, no rate per user.
func TestWholeAnswer(t *testing.T) {
	r := example()[4-1]
	r.Timeline.Whole, r.Timeline.Chunks = true, []time.Duration{800 * ms}
	var c wallClock
	row := c.row(r, "p", true)
	if row.Latency != 800 || row.First != 0 || row.Gaps != nil {
		t.Errorf("%+v", row)
	}
	for name, v := range map[string]float64{"TTFT": row.TTFT, "Second": row.Second, "ITL": row.ITL, "PerUser": row.Values()[measure.PerUser], "from due": row.Values()[measure.TTFTFromDue]} {
		if !math.IsNaN(v) {
			t.Errorf("%s = %v, want none", name, v)
		}
	}
	if line := string(AppendExport(nil, row)); strings.Contains(line, "time_to_first_token") || strings.Contains(line, "inter_") || !strings.Contains(line, `"request_latency":{"value":800,"unit":"ms"}`) {
		t.Error(line)
	}
}

// Requests beyond the memory limit are counted and still written to the file.
func TestCollectorIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), ExportName)
	synctest.Test(t, func(t *testing.T) {
		c, err := NewCollector(settings, CollectorOptions{Processor: "replayd", Path: path, Gaps: true, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		c.most, c.gaps = 4, maxGaps-1
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		for _, r := range example()[3:11] { // 8 requests, of all three remainders mod 3
			c.Observe(r)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		run := c.Collected()
		want := []string{"4 requests after the first 4 are not in these figures", "the gaps between chunks of 3 requests are not in these figures"}
		if diff := cmp.Diff(want, run.Partial); diff != "" || len(run.Rows) != 4 || len(c.sessions.known) > 4 {
			t.Errorf("%d rows, %d sessions\n%s", len(run.Rows), len(c.sessions.known), diff)
		}
	})
	file, err := os.ReadFile(path)
	if err != nil || bytes.Count(file, []byte("\n")) != 8 || bytes.Count(file, []byte("inter_chunk_latency")) != 7 {
		t.Errorf("%v\n%s", err, file)
	}
	run, err := one(readExport(bytes.NewReader(file), "x", 5))
	if diff := cmp.Diff([]string{"x: 3 requests after the first 5 were not read"}, run.Partial); diff != "" || err != nil || len(run.Rows) != 5 {
		t.Errorf("%v\n%s", err, diff)
	}
}

// A full disk costs lines of the file, which are reported, and no figure.
func TestCollectorOnAFullDisk(t *testing.T) {
	const device = "/dev/full"
	if _, err := os.Stat(device); err != nil {
		machine.Lacks(t, device, err)
	}
	synctest.Test(t, func(t *testing.T) {
		c, err := NewCollector(settings, CollectorOptions{Path: device, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		c.Observe(example()[3])
		cancel()
		if err := <-ended; err == nil {
			t.Error("want an error at the end, got none")
		}
		run := c.Collected()
		if diff := cmp.Diff([]string{"/dev/full: 1 lines could not be written"}, run.Partial); diff != "" || len(run.Rows) != 1 {
			t.Errorf("%d rows\n%s", len(run.Rows), diff)
		}
	})
}

func BenchmarkCollector(b *testing.B) {
	c, err := NewCollector(settings, CollectorOptions{Path: os.DevNull, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	r := example()[3]
	b.ReportAllocs()
	for b.Loop() {
		c.Observe(r)
		c.rows = c.rows[:0]
	}
}

// Turns of one pass are one conversation; turns of the next pass are another.
func TestCorrelation(t *testing.T) {
	for id, want := range map[string]string{
		"run/0/4": "run/0/s", "run/0/5": "run/0/s", "run/0/4.1": "run/0/s.1", "run/0/5.1": "run/0/s.1", "a.b/7/1": "a.b/7/s", "run/warmup/0": "run/warmup/s",
	} {
		if got := correlation(id, "s"); got != want {
			t.Errorf("%s: want %s, got %s", id, want, got)
		}
	}
}

// wait lets virtual time pass.
func wait(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}
