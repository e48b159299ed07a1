package trace

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCurve(t *testing.T) {
	row := func(at float64, input, output int) string {
		return fmt.Sprintf(`{"timestamp":%v,"input_length":%d,"output_length":%d}`, at, input, output)
	}
	f := func(name string, want Curve, rows ...string) {
		t.Helper()
		if diff := cmp.Diff(want, open(t, strings.Join(rows, "\n"), Options{}).Stats.Curve); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	const narrow = 7812500 * time.Nanosecond
	f("one row", Curve{narrow, []int64{1}, []int64{5}, []int64{7}}, row(0, 5, 7))
	f("at a border", Curve{narrow, []int64{1, 0, 2}, []int64{5, 0, 3}, []int64{7, 0, 3}}, row(0, 5, 7), row(15.625, 1, 1), row(16, 2, 2))
	f("a row later", Curve{narrow, []int64{0, 1}, []int64{0, 5}, []int64{0, 7}}, row(8, 5, 7))
	f("the epoch's milliseconds", Curve{narrow, []int64{1, 1}, []int64{5, 6}, []int64{7, 8}}, row(1696000000000, 5, 7), row(1696000000010, 6, 8))
	f("not sorted", Curve{narrow, []int64{1, 1}, []int64{5, 6}, []int64{7, 8}}, row(1696000000010, 6, 8), row(1696000000000, 5, 7))
	f("text", Curve{narrow, []int64{1}, []int64{0}, []int64{20}}, `{"timestamp":0,"text_input":"x","output_length":20}`)
	f("no output", Curve{narrow, []int64{1}, []int64{4}, []int64{0}}, `{"timestamp":0,"input_length":4}`)
	f("no timestamps", Curve{}, `{"input_length":4}`)
	f("Azure, soon after 1970", Curve{narrow, []int64{1, 1}, []int64{374, 3}, []int64{44, 4}},
		azureHeader, "1970-01-01 00:00:05.0000000,374,44", "1970-01-01 00:00:05.0100000,3,4")

	// Two rows, one of them at the end: bins are as wide as needed and no wider.
	for _, c := range []struct {
		last float64 // milliseconds
		bin  time.Duration
		bins int
	}{
		{1874.999999, narrow, 240},
		{1875, 2 * narrow, 121},
		{119_999, time.Second / 2, 240},
		{120_000, time.Second, 121},
		{240_000, 2 * time.Second, 121},
		{3_536_999, 16 * time.Second, 222},
		{86_400_000, 512 * time.Second, 169},
		{31_536_000_000, 1 << 18 * time.Second, 121},
	} {
		got := open(t, row(0, 1, 2)+"\n"+row(c.last, 3, 4), Options{}).Stats.Curve
		want := Curve{c.bin, make([]int64, c.bins), make([]int64, c.bins), make([]int64, c.bins)}
		for i, v := range [][]int64{want.Requests, want.InputTokens, want.OutputTokens} {
			v[0], v[c.bins-1] = []int64{1, 1, 2}[i], []int64{1, 3, 4}[i]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("until %v ms: %s", c.last, diff)
		}
	}
}

// The same bins computed by division, once the width is known, from rows in any order.
func TestCurveASecondWay(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	for range 100 {
		most := time.Duration(1) << (10 + rng.IntN(50)) // 1 µs to 36 years
		var c Curve
		type load struct{ requests, input, output int64 }
		var last time.Duration
		rows := map[time.Duration]load{}
		for range 1 + rng.IntN(300) {
			offset := time.Duration(rng.Int64N(int64(most)))
			r := Record{InputTokens: rng.IntN(100_000), OutputTokens: rng.IntN(1000)}
			c.add(&r, offset)
			l := rows[offset]
			rows[offset] = load{l.requests + 1, l.input + int64(r.InputTokens), l.output + int64(r.OutputTokens)}
			last = max(last, offset)
		}
		want := Curve{Bin: time.Second / 128}
		for last/want.Bin >= 240 {
			want.Bin *= 2
		}
		bins := last/want.Bin + 1
		want.Requests, want.InputTokens, want.OutputTokens = make([]int64, bins), make([]int64, bins), make([]int64, bins)
		for offset, l := range rows {
			want.Requests[offset/want.Bin] += l.requests
			want.InputTokens[offset/want.Bin] += l.input
			want.OutputTokens[offset/want.Bin] += l.output
		}
		if diff := cmp.Diff(want, c); diff != "" {
			t.Fatal(diff)
		}
	}
}

func sum(values []int64) (total int64) {
	for _, v := range values {
		total += v
	}
	return total
}

func TestCurveHasAllOfATrace(t *testing.T) {
	check := func(name string, s Stats) {
		t.Helper()
		c := s.Curve
		if sum(c.Requests) != int64(s.Requests) || sum(c.InputTokens) != s.Input.Sum || sum(c.OutputTokens) != s.Output.Sum ||
			int64(len(c.Requests)) != int64(s.Span/c.Bin)+1 || len(c.Requests) > 240 {
			t.Errorf("%s: %d requests, %d and %d tokens in %d bins of %v, want %d, %d and %d until %v", name, sum(c.Requests), sum(c.InputTokens),
				sum(c.OutputTokens), len(c.Requests), c.Bin, s.Requests, s.Input.Sum, s.Output.Sum, s.Span)
		}
	}
	rng := rand.New(rand.NewPCG(19, 20))
	for range 50 {
		at := make([]int, 1+rng.IntN(500))
		for i := range at {
			at[i] = rng.IntN(1 + rng.IntN(10_000_000))
		}
		if rng.IntN(2) == 0 {
			slices.Sort(at)
		}
		check("random", open(t, jsonl(at), Options{}).Stats)
	}
	for _, name := range []string{"mooncake_conversation.jsonl", "azure_2023_conv.csv"} {
		t.Run(name, func(t *testing.T) {
			f, err := Open(t.Context(), realTrace(t, name), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			check(name, f.Stats)
			if f.Stats.Curve.Bin != 16*time.Second { // the traces have 3,537 s and 3,502 s
				t.Errorf("bins of %v, want 16s", f.Stats.Curve.Bin)
			}
		})
	}
}
