package measure

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const every = `one of ttft (time_to_first_token), tpot (inter_token_latency), e2e (request_latency), ttfat (time_to_first_output_token), ` +
	`ttft_from_due (time_to_first_token_from_due), e2e_from_due (request_latency_from_due), lateness, time_to_second_token, ` +
	`output_token_throughput_per_user, output_sequence_length, input_sequence_length, output_token_count, reasoning_token_count`

func TestParseSLO(t *testing.T) {
	f := func(text string, want SLO) {
		t.Helper()
		if got, err := ParseSLO(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("ParseSLO(%q) = %+v, %v, want %+v", text, got, err, want)
		}
	}
	f("", nil)
	f("  ", nil)
	f("tpot:50ms,ttft:500ms,e2e:10s", SLO{{TTFT, 500}, {TPOT, 50}, {E2E, 10_000}})
	f(" e2e = 1m30s , ttft=1us ", SLO{{TTFT, 0.001}, {E2E, 90_000}})
	f(" time_to_first_token:370  request_latency:648.5\toutput_token_throughput_per_user:20.5", SLO{{TTFT, 370}, {E2E, 648.5}, {PerUser, 20.5}})
	f("inter_token_latency:50ms,lateness:1,output_sequence_length:100", SLO{{TPOT, 50}, {Lateness, 1}, {OutputLength, 100}})
}

func TestParseSLOErrors(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		_, err := ParseSLO(text)
		if err == nil || err.Error() != strings.Join(want, "\n") {
			t.Errorf("ParseSLO(%q): %v, want %q", text, err, want)
		}
	}
	f("ttft", `want NAME:VALUE such as ttft:500ms, got "ttft"`)
	f("370", `want NAME:VALUE such as ttft:500ms, got "370"`)
	f("itl:1s", `itl: want `+every+`, got "itl"`)
	f("ttft:-1s", `ttft: want a time from 0 to 100h0m0s, got "-1s"`)
	f("ttft:0s", `ttft: want a bound above 0, got "0s"`)
	f("ttft:1s,time_to_first_token:2", `time_to_first_token: want it once, got it again with "2"`)
	f("ttft:500, x:1s", `ttft: want a duration with its unit such as 500ms, got "500"`, `x: want `+every+`, got "x"`)
	f("request_latency:-1 inter_token_latency:NaN lateness:Inf",
		`request_latency: want a time from 0 to 100h0m0s, got "-1"`,
		`inter_token_latency: want a time from 0 to 100h0m0s, got "NaN"`,
		`lateness: want a time from 0 to 100h0m0s, got "Inf"`)
	f("output_sequence_length:long output_token_throughput_per_user:1e300",
		`output_sequence_length: want a number of tokens, got "long"`,
		`output_token_throughput_per_user: want a number from 0 to 1e+12, got "1e300"`)
}

func FuzzParseSLO(f *testing.F) {
	for _, seed := range []string{
		"", "ttft:500ms,tpot:50ms,e2e:10s", "ttft=1h", "ttft:1s,ttft:1s", ":", "=,=", "e2e:9999999h", "tpot:1e3s",
		"time_to_first_token:370 request_latency:648", "lateness:0.0000001", "output_token_throughput_per_user:1e-9",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		slo, err := ParseSLO(text)
		if err != nil {
			if slo != nil {
				t.Errorf("an error and %+v too", slo)
			}
			return
		}
		for _, b := range slo {
			if !(b.Limit > 0) {
				t.Errorf("a bound of %v", b.Limit)
			}
		}
		if again, err := ParseSLO(slo.String()); err != nil || !slices.Equal(again, slo) {
			t.Errorf("%q comes back as %+v, %v, want %+v", slo, again, err, slo)
		}
	})
}

func TestViolations(t *testing.T) {
	all := SLO{{TTFT, 100}, {TPOT, 10}, {E2E, 200}}
	f := func(name string, slo SLO, r *Request, want string) {
		t.Helper()
		v := r.Values()
		var broken []string
		for i, b := range slo.Violations(r.Outcome, &v) {
			if b {
				broken = append(broken, SLOName(i))
			}
		}
		if got := strings.Join(broken, " "); got != want {
			t.Errorf("%s: broke %q, want %q", name, got, want)
		}
		if got, _ := slo.Good(r.Outcome, &v); got != (want == "") {
			t.Errorf("%s: good: %v", name, got)
		}
	}
	f("exactly at every bound", all, answered(OK, 100*milli, 110*milli), "")
	f("TTFT", all, answered(OK, 100*milli+1, 110*milli), "ttft")
	f("TPOT", all, answered(OK, 100*milli, 110*milli+1), "tpot")
	f("e2e, and TPOT undefined", SLO{{TPOT, 1}, {E2E, 200}}, answered(OK, 201*milli), "e2e")
	f("all three", all, answered(OK, 150*milli, 300*milli), "ttft tpot e2e")
	f("no bound", nil, answered(OK, time.Hour, 2*time.Hour), "")
	f("failed, though it was quick", all, answered(Truncated, milli), "error")
	f("failed without a bound", nil, answered(HTTP5xx), "error")
	f("1/10 milli", SLO{{PerUser, 100}}, answered(OK, 100*milli, 110*milli), "")
	f("less than 1/10 milli", SLO{{PerUser, 100.1}}, answered(OK, 100*milli, 110*milli), "output_token_throughput_per_user")
	f("one token has no rate", SLO{{PerUser, 1e9}}, answered(OK, 100*milli), "")
	f("second token", SLO{{SecondToken, 9}}, answered(OK, 100*milli, 110*milli), "time_to_second_token")
	f("no second token", SLO{{SecondToken, 9}}, answered(OK, 100*milli), "")
	thought := answered(OK, 100*milli, 110*milli)
	thought.Timeline.ReasoningChunks = 1
	f("reasoning", SLO{{TTFT, 100}, {TTFAT, 109}}, thought, "ttfat")
	thought.Timeline.ReasoningChunks = 2
	f("reasoning alone", SLO{{TTFAT, 1}}, thought, "")
	f("shorter than the least", SLO{{OutputLength, 3}}, answered(OK, 100*milli, 110*milli), "output_sequence_length")
	late := answered(OK, 100*milli, 110*milli)
	late.Timeline.Due = late.Timeline.Write.Add(-50 * milli)
	late.Timeline.Ready = late.Timeline.Due
	f("from due", SLO{{TTFT, 100}, {TTFTFromDue, 149}, {E2EFromDue, 160}, {Lateness, 50}}, late, "ttft_from_due")
}

// For a complete request that ended ok, every quantity has a value.
func TestValues(t *testing.T) {
	r := answered(OK, 100*milli, 110*milli, 130*milli)
	r.InputTokens, r.Usage, r.Timeline.ReasoningChunks = 7, Usage{Prompt: 9, Output: 4, Reasoning: 1}, 1
	v := r.Values()
	want := map[Quantity]float64{
		TTFT: 100, TTFAT: 110, TPOT: 10, E2E: 130, SecondToken: 10, PerUser: 100, OutputLength: 4, InputLength: 9,
		OutputCount: 3, ReasoningCount: 1,
		Lateness: float64(r.Lateness()) / 1e6, TTFTFromDue: float64(r.Timeline.Write.Sub(r.Timeline.Due)+100*milli) / 1e6,
		E2EFromDue: float64(r.Timeline.Write.Sub(r.Timeline.Due)+130*milli) / 1e6,
	}
	for q := range NumQuantities {
		if v[q] != want[q] {
			t.Errorf("%v = %v, want %v", q, v[q], want[q])
		}
	}
}
