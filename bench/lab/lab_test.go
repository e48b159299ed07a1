//go:build linux

package lab

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestQuantile(t *testing.T) {
	f := func(s Sample, q, want float64) {
		t.Helper()
		if got := s.Quantile(q); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("quantile %v of %v: want %v, got %v", q, s, want, got)
		}
	}
	f(nil, 0.5, math.NaN())
	f(Sample{7}, 0.99, 7)
	f(Sample{3, 1, 2}, 0.5, 2)
	f(Sample{4, 1, 3, 2}, 0.5, 2.5)
	f(Sample{0, 100}, 0.99, 99)
	f(Sample{1, 5, 3}, 1, 5)
	f(Sample{1, 5, 3}, 0, 1)
	if got := (Sample{1, 2, 6}).Mean(); got != 3 {
		t.Errorf("want a mean of 3, got %v", got)
	}
	if got := Median(4, math.NaN(), 2); got != 3 {
		t.Errorf("want a median of 3, got %v", got)
	}
}

func TestSpacing(t *testing.T) {
	// 50 ms, 99 gaps of 10 ms and 50 ms of slack, divided by 500.
	if got := Spacing(500, 100, 50*time.Millisecond, 10*time.Millisecond); got != 2180*time.Microsecond {
		t.Errorf("want 2.18 ms, got %v", got)
	}
}

func TestSteal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		// 20 ms are stolen in the third slice.
		s := WatchSteal(func() time.Duration {
			if time.Since(begin) > 250*time.Millisecond {
				return 5*time.Second + 20*time.Millisecond
			}
			return 5 * time.Second
		})
		<-time.After(time.Second + time.Millisecond)
		s.Stop()
		if got := s.Total(); got != 20*time.Millisecond {
			t.Errorf("want 20 ms taken, got %v", got)
		}
		if got, want := s.Share(), 20.0/1001; math.Abs(got-want) > 1e-9 {
			t.Errorf("want a share of %v, got %v", want, got)
		}
		at := func(ms int64) int64 { return begin.UnixNano() + ms*int64(time.Millisecond) }
		for _, c := range []struct {
			from, to int64
			clean    bool
		}{
			{0, 50, true},
			{0, 99, true},
			{150, 150, false},
			{250, 250, false},
			{250, 260, false},
			{350, 350, false},
			{450, 450, true},
			{50, 800, false},
			{500, 900, true},
		} {
			if got := s.Clean(at(c.from), at(c.to)); got != c.clean {
				t.Errorf("%d to %d ms: want clean %v, got %v", c.from, c.to, c.clean, got)
			}
		}
	})
}

func TestUsage(t *testing.T) {
	u := &Usage{at: []int64{100, 200, 300}, used: []time.Duration{10, 30, 40}}
	for _, c := range []struct {
		from, to int64
		want     time.Duration
	}{{100, 300, 30}, {150, 250, 15}, {0, 1000, 30}, {200, 200, 0}} {
		if got := u.Between(c.from, c.to); got != c.want {
			t.Errorf("%d to %d: want %d, got %d", c.from, c.to, c.want, got)
		}
	}
}

func TestProcess(t *testing.T) {
	own, err := OwnCPU()
	if err != nil {
		t.Fatal(err)
	}
	seen, err := CPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if own > 0 && (seen < own-100*time.Millisecond || seen > own+100*time.Millisecond) {
		t.Errorf("want what the process says of itself, %v, got %v", own, seen)
	}
	now, peak, err := Memory(os.Getpid())
	if err != nil || now < 1<<20 || peak < now {
		t.Errorf("want some MiB and no more than at the peak, got %d, %d, %v", now, peak, err)
	}
	if _, err := CPU(-1); err == nil {
		t.Error("want an error of a process that there is not")
	}
}

func TestTable(t *testing.T) {
	table := &Table{Title: "Errors, µs:", Head: []string{"streams", "mean"}}
	table.Add("100", "4.20")
	table.Add("1,000 at 10 ms", "–")
	table.Note("of %d rounds", 2)
	want := strings.Join([]string{
		"Errors, µs:", "",
		"| streams        | mean |",
		"|----------------|------|",
		"| 100            | 4.20 |",
		"| 1,000 at 10 ms | –    |", "",
		"of 2 rounds", "",
	}, "\n")
	if got := table.String(); got != want {
		t.Errorf("want\n%s\ngot\n%s", want, got)
	}
	dir := t.TempDir()
	steal := WatchSteal(func() time.Duration { return 0 })
	steal.Stop()
	if err := WriteResults(dir, "truth", steal, table); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "truth.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(string(text), want) || !strings.Contains(string(text), "steal in the run: 0.00 s") {
		t.Errorf("want the table after machine, date and steal, got\n%s", text)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1234.5: "1234", 12.34: "12.3", 1.234: "1.23", 0.01234: "0.0123", -4.5: "-4.50"} {
		if got := Number(v); got != want {
			t.Errorf("%v: want %s, got %s", v, want, got)
		}
	}
	if got := Number(math.NaN()); got != "–" {
		t.Errorf("want –, got %s", got)
	}
}

func TestLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seen.jsonl")
	want := []Seen{{ID: "a/0/1", Start: 1, Chunks: []int64{2, 3}}, {ID: "a/0/2", Start: 4}}
	if err := WriteLines(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadLines[Seen](path)
	if err != nil || len(got) != 2 || got[0].ID != "a/0/1" || got[0].Chunks[1] != 3 || got[1].Start != 4 {
		t.Errorf("want %v, got %v, %v", want, got, err)
	}
}

func TestFlags(t *testing.T) {
	p, err := Flags("x", []string{"--url", "http://127.0.0.1:1", "--spacing", "2ms", "--body-bytes", "12"})
	if err != nil || p.Spacing != 2*time.Millisecond || p.Prompt() != "word word wo" || !strings.Contains(p.Body(), `"max_tokens":100`) {
		t.Errorf("got %+v, %v", p, err)
	}
	for _, args := range [][]string{{}, {"--url", "ftp://a"}, {"--url", "http://a", "more"}, {"--url", "http://a", "--streams", "0"}} {
		if _, err := Flags("x", args); err == nil {
			t.Errorf("%q: want an error, got none", args)
		}
	}
}
