package scrape

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/textparse"
)

// TestParseTextHostile parses samples over the bounds among others: only their families are dropped, and line numbers stay
// correct.
func TestParseTextHostile(t *testing.T) {
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for _, c := range []struct {
		name, line string
		skipped    int
	}{
		{"64 labels", "b{" + many(64, `l%d="",`) + "} 1", 0},
		{"65 labels", "b{" + many(65, `l%d="",`) + "} 1", 1},
		{"100,000 labels", "b{" + many(100_000, `l%d="x",`) + "} 1", 1},
		{"3,000,000 labels", "b{" + strings.Repeat(`l="",`, 3_000_000) + "} 1", 1},
		{"a value of 1 KiB", `b{l="` + strings.Repeat("x", 1<<10) + `"} 1`, 0},
		{"a value past 1 KiB", `b{l="` + strings.Repeat("x", 1<<10+1) + `"} 1`, 1},
		{"a value of 10 MB", `b{l="` + strings.Repeat("x", 10<<20) + `"} 1`, 1},
		{"a long name of a label", `b{` + strings.Repeat("x", 10<<10) + `=""} 1`, 1},
		{"a long number", "b 0" + strings.Repeat("0", 1<<20), 1},
		{"a label twice", `b{l="1",m="",l="2"} 1`, 1},
		{"the name twice", `b{__name__="c"} 1`, 1},
		{"a quoted name", `{"b",l="` + strings.Repeat("x", 10<<20) + `"} 1`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := []byte("a 1\n# HELP b " + strings.Repeat("x", 100_000) + "\n" + c.line + "\nc 1\n")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			p, err := Parse(body, text004, func(name string) bool { return name != "c" })
			runtime.ReadMemStats(&after)
			if err != nil {
				t.Fatal(err)
			}
			if len(p.Samples["b"]) != 1-c.skipped || p.Total != 3 || len(p.Samples["a"]) != 1 {
				t.Errorf("want a kept and %d of b skipped, got %d of b of %d", c.skipped, len(p.Samples["b"]), p.Total)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 {
				t.Errorf("want at most 32 MiB allocated, got %d", used)
			}
			// Unwanted samples are not checked, and an error in a later line has the right line number.
			p, err = Parse(append(body, "d d\n"...), text004, func(name string) bool { return name == "a" })
			if err != nil || p.Bad == 0 || c.skipped == 0 && !strings.HasPrefix(string(p.First()), "line 5: ") {
				t.Errorf("want a bad line 5, got %q and %v", p.First(), err)
			}
			if want := []string{"a{} 1"}; cmp.Diff(want, written(p)) != "" {
				t.Errorf("want %v, got %v", want, written(p))
			}
		})
	}
}

func TestParseBoundsOfAPage(t *testing.T) {
	rows := func(n int) []byte {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "vllm:x{engine=\"%d\",id=\"%030d\"} %d\n", i%8, i, i)
		}
		return []byte(b.String())
	}
	for _, c := range []struct {
		n      int
		wanted bool
		reason Reason
	}{
		{maxSamples, false, ""},
		{maxSamples + 1, false, ReasonTooLarge},
		{maxKept, true, ""},
		{maxKept + 1, true, ReasonTooLarge},
		{maxSamples, true, ReasonTooLarge},
	} {
		p, err := Parse(rows(c.n), text004, func(string) bool { return c.wanted })
		if reasonOf(t, err) != c.reason || (p == nil) != (c.reason != "") {
			t.Errorf("%d samples, wanted %v: want reason %q, got %v", c.n, c.wanted, c.reason, err)
		}
		if c.reason == "" && p.Total != c.n {
			t.Errorf("want %d samples, got %d", c.n, p.Total)
		}
	}
}

// TestParseHoldsNoBody measures the memory that a page with one small sample keeps alive.
func TestParseHoldsNoBody(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	var pages []*Page
	for range 8 {
		p, err := Parse([]byte("a{b=\"c\"} 1\n"+strings.Repeat("# 0123456789\n", 100_000)+"d{e=\"f\"} 1\n"), text004, anyName)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, p)
	}
	if after := heap(); after > before+1<<20 {
		t.Errorf("%d small pages hold %d bytes", len(pages), after-before)
	}
	runtime.KeepAlive(pages)
}

func TestParserPanics(t *testing.T) {
	if _, err := nextEntry(struct{ textparse.Parser }{}); err == nil || !strings.Contains(err.Error(), "nil pointer") {
		t.Errorf("want the panic as an error, got %v", err)
	}
}
