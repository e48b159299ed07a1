package terminal

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/measure"
)

var update = flag.Bool("update", false, "rewrite golden files")

// flying returns a ledger with n requests in flight.
func flying(n int64, l measure.Ledger) measure.Ledger {
	l.InFlight = n
	return l
}

// seen returns observations with a rate, p50 and p99 of TTFT, p50 of TPOT and p99 of lateness; 0: there are none.
func seen(rate float64, ttft50, ttft99, tpot50, late99 time.Duration, lastErr string) observed {
	values := func(p50, p99 time.Duration) window {
		if p99 == 0 {
			return nil
		}
		return append(slices.Repeat(window{p50}, 60), slices.Repeat(window{p99}, 40)...)
	}
	o := observed{ttft: values(ttft50, ttft99), tpot: values(tpot50, tpot50), lateness: values(late99, late99), lastErr: lastErr}
	if rate > 0 {
		o.marks = []mark{{time.Unix(0, 0), 0}, {time.Unix(1000, 0), int64(math.Round(1000 * rate))}}
	}
	return o
}

// views lists runs in all states.
var views = []struct {
	name string
	view view
}{
	{"the target was not reached yet", view{Outlook: Outlook{Ledger: flying(0, ended(0, 0, 0)), Requests: 400}, elapsed: time.Second}},
	{"in the middle of a plan", view{
		Outlook: Outlook{Ledger: flying(8, ended(182, 3, 0)), Requests: 400, Length: 163 * time.Second, Left: 88 * time.Second}, elapsed: 75 * time.Second,
		observed: seen(12.34, 20*time.Millisecond, 812*time.Millisecond, 9300*time.Microsecond, 250*time.Microsecond, "http_429: HTTP 429: simulated fault"),
	}},
	{"as long as it gets", view{
		Outlook: Outlook{Ledger: flying(1024, ended(4882, 1000, 123)), Requests: 12031, Length: time.Hour, Left: 35 * time.Minute}, elapsed: 25 * time.Minute,
		observed: seen(4.2, 4440*time.Millisecond, 11184*time.Millisecond, 120*time.Millisecond, 5*time.Millisecond, strings.Repeat("long ", 60)),
	}},
	{"a window: the number of requests is not known", view{
		Outlook: Outlook{Ledger: flying(0, ended(10, 0, 0)), Length: 10 * time.Minute, Left: 9 * time.Minute}, elapsed: time.Minute,
		observed: seen(0.2, 0, 0, 0, 0, ""),
	}},
	{"the first rows: the plan's end is not known, the rate is", view{
		Outlook: Outlook{Ledger: flying(2, ended(25, 0, 0)), Requests: 100}, elapsed: 10 * time.Second,
		observed: seen(2.5, 0, 0, 0, 0, ""),
	}},
	{"its start lies ahead", view{
		Outlook: Outlook{Ledger: flying(0, ended(0, 0, 0)), Requests: 400, Length: time.Minute, Left: 94 * time.Second}, elapsed: 6 * time.Second,
	}},
	{"all were sent", view{
		Outlook: Outlook{Ledger: flying(2, ended(398, 0, 0)), Requests: 400, Length: time.Minute}, elapsed: 61 * time.Second,
		observed: seen(6.6, 0, 0, 0, 0, ""),
	}},
	{"stopping", view{
		Outlook:  Outlook{Ledger: flying(8, ended(200, 0, 0)), Requests: 400, Length: time.Minute, Left: 30 * time.Second, Stopping: true},
		elapsed:  31 * time.Second,
		observed: seen(6.6, 0, 0, 0, 0, ""),
	}},
	{"over", view{
		Outlook: Outlook{Ledger: flying(0, ended(399, 1, 0)), Requests: 400, Length: time.Minute}, elapsed: 63 * time.Second, ended: true,
		observed: seen(0, 20*time.Millisecond, 812*time.Millisecond, 0, 0, ""),
	}},
	{"a daemon: no end", view{
		Outlook: Outlook{Ledger: flying(0, ended(300, 0, 1))}, elapsed: 75 * time.Second,
		observed: seen(4.1, 20*time.Millisecond, 812*time.Millisecond, 9300*time.Microsecond, 250*time.Microsecond, ""),
	}},
}

func TestLines(t *testing.T) {
	b := &strings.Builder{}
	for _, columns := range []int{40, 80, 120, 200} {
		fmt.Fprintf(b, "%d columns\n%s|\n", columns, strings.Repeat("-", columns-1))
		for _, v := range views {
			fmt.Fprintf(b, "# %s\n%s\n", v.name, strings.Join(v.view.lines(columns), "\n"))
		}
		b.WriteString("\n")
	}
	const path = "testdata/lines.golden"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// At any width no line is too long, and there are at most two lines.
func TestLinesFit(t *testing.T) {
	for _, v := range views {
		for columns := range 300 {
			lines := v.view.lines(columns)
			if len(lines) > 2 {
				t.Errorf("%s: %d lines", v.name, len(lines))
			}
			for _, l := range lines {
				if Width(l) > max(1, columns-1) {
					t.Errorf("%s, %d columns: %d used: %q", v.name, columns, Width(l), l)
				}
			}
		}
	}
}

// 100 % is shown only when all is done.
func TestShare(t *testing.T) {
	f := func(v view, want string) {
		t.Helper()
		if got := v.lines(60)[0]; !strings.Contains(got, want) {
			t.Errorf("want %q, got %q", want, got)
		}
	}
	f(view{Outlook: Outlook{Ledger: flying(0, ended(999, 0, 0)), Requests: 1000}}, "]   99 %  999 of 1000")
	f(view{Outlook: Outlook{Ledger: flying(0, ended(998, 1, 1)), Requests: 1000}}, "=]  100 %  1000 of 1000")
	f(view{Outlook: Outlook{Ledger: flying(0, ended(11, 0, 0)), Requests: 10}}, "=]  100 %  11 of 10")                                                              // a trace that grew
	f(view{Outlook: Outlook{Ledger: flying(0, ended(0, 0, 0)), Length: 4 * time.Second, Left: 3 * time.Second}}, "[=======>                      ]   25 %  0 done") // 7.5 of 30 cells
}
