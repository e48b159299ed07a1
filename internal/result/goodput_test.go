package result

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/measure"
)

func TestParseGoodput(t *testing.T) {
	got, err := ParseGoodput(" time_to_first_token:370  request_latency:648\toutput_token_throughput_per_user:20.5")
	want := []Bound{{"time_to_first_token", 370}, {"request_latency", 648}, {"output_token_throughput_per_user", 20.5}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	f := func(text string, want ...string) {
		t.Helper()
		bounds, err := ParseGoodput(text)
		if err == nil || bounds != nil || err.Error() != strings.Join(want, "\n") {
			t.Errorf("%q: %v\nwant %s\n got %v", text, bounds, strings.Join(want, "\n"), err)
		}
	}
	f("", `goodput: want METRIC:VALUE such as time_to_first_token:370, got ""`)
	f("370", `goodput: want METRIC:VALUE such as time_to_first_token:370, got "370"`)
	f("ttft:370 request_latency:-1 request_latency:NaN lateness:1 lateness:2",
		`goodput: want one of time_to_first_token, time_to_second_token, request_latency, inter_token_latency, output_token_throughput_per_user, `+
			`output_sequence_length, input_sequence_length, output_token_count, reasoning_token_count, time_to_first_token_from_due, `+
			`request_latency_from_due, lateness, got "ttft"`,
		`goodput: request_latency: want a number ≥ 0, got "-1"`,
		`goodput: request_latency: want a number ≥ 0, got "NaN"`,
		`goodput: lateness: want it once, got it again with "2"`)
}

func FuzzParseGoodput(f *testing.F) {
	f.Add("time_to_first_token:370 request_latency:648")
	f.Fuzz(func(t *testing.T, text string) {
		bounds, err := ParseGoodput(text)
		if err != nil {
			return
		}
		parts := make([]string, len(bounds))
		for i, b := range bounds {
			parts[i] = b.String()
		}
		again, err := ParseGoodput(strings.Join(parts, " "))
		if diff := cmp.Diff(bounds, again); diff != "" || err != nil {
			t.Errorf("%q: %v\n%s", text, err, diff)
		}
	})
}

// A request is good when it ended ok and keeps every bound; one that is at a bound keeps it.
func TestKeeps(t *testing.T) {
	ok := Row{Outcome: measure.OK, TTFT: 370, Latency: 648, ITL: 10, Output: 5}
	bounds := func(text string) []Bound {
		b, err := ParseGoodput(text)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	one := ok
	one.ITL = math.NaN() // one token
	failed := ok
	failed.Outcome = measure.Truncated
	f := func(r Row, text string, want bool) {
		t.Helper()
		if got := Keeps(r, bounds(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	f(ok, "time_to_first_token:370 request_latency:648", true)
	f(ok, "time_to_first_token:369.99 request_latency:648", false)
	f(ok, "time_to_first_token:370 request_latency:647", false)
	f(ok, "output_token_throughput_per_user:100", true) // 1/10 ms
	f(ok, "output_token_throughput_per_user:100.1", false)
	f(ok, "inter_token_latency:10", true)
	f(one, "inter_token_latency:10", false)
	f(one, "time_to_first_token:370", true)
	f(failed, "time_to_first_token:370", false)
	if !Keeps(ok, nil) || Keeps(failed, nil) {
		t.Error("without bounds every ok request is goodput, and no other")
	}
}

// AIPerf's document: 1000 requests/s at 7.43 a server are 135 servers, at 26.67 38.
func TestServers(t *testing.T) {
	f := func(requests, goodput float64, want int, wantOK bool) {
		t.Helper()
		if got, ok := Servers(requests, goodput); got != want || ok != wantOK {
			t.Errorf("Servers(%v, %v) = %d, %v", requests, goodput, got, ok)
		}
	}
	f(1000, 7.43, 135, true)
	f(1000, 26.67, 38, true)
	f(100, 10, 10, true)
	f(0, 10, 0, true)
	f(1000, 0, 0, false)
	f(1000, math.NaN(), 0, false)
	f(-1, 10, 0, false)
	f(1e300, 1e-9, 0, false)
}
