package measure

import (
	"strings"
	"testing"
	"time"
)

func TestParseSLO(t *testing.T) {
	f := func(text string, want SLO) {
		t.Helper()
		if got, err := ParseSLO(text); err != nil || got != want {
			t.Errorf("ParseSLO(%q) = %+v, %v, want %+v", text, got, err, want)
		}
	}
	f("", SLO{})
	f("  ", SLO{})
	f("ttft:500ms,tpot:50ms,e2e:10s", SLO{TTFT: 500 * ms, TPOT: 50 * ms, E2E: 10 * time.Second})
	f(" e2e = 1m30s , ttft=1us ", SLO{TTFT: time.Microsecond, E2E: 90 * time.Second})
}

func TestParseSLOErrors(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		_, err := ParseSLO(text)
		if err == nil || err.Error() != strings.Join(want, "\n") {
			t.Errorf("ParseSLO(%q): %v, want %q", text, err, want)
		}
	}
	f("ttft", `slo: want NAME:DURATION such as ttft:500ms, got "ttft"`)
	f("ttft:1s,", `slo: want NAME:DURATION such as ttft:500ms, got ""`)
	f("itl:1s", `slo: want ttft, tpot or e2e, got "itl"`)
	f("ttft:-1s", `slo: ttft: want a duration above 0, got "-1s"`)
	f("ttft:0s", `slo: ttft: want a duration above 0, got "0s"`)
	f("ttft:1s,ttft:2s", `slo: ttft: want it once, got it again with "2s"`)
	f("ttft:500, x:1s",
		`slo: ttft: want a duration with its unit such as 500ms, got "500": time: missing unit in duration "500"`,
		`slo: want ttft, tpot or e2e, got "x"`)
}

func FuzzParseSLO(f *testing.F) {
	for _, seed := range []string{"", "ttft:500ms,tpot:50ms,e2e:10s", "ttft=1h", "ttft:1s,ttft:1s", ":", "=,=", "e2e:9999999h", "tpot:1e3s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		slo, err := ParseSLO(text)
		if err != nil {
			if slo != (SLO{}) {
				t.Errorf("an error and %+v too", slo)
			}
			return
		}
		for _, d := range slo.bounds() {
			if d < 0 {
				t.Errorf("a bound of %v", d)
			}
		}
		if again, err := ParseSLO(slo.String()); err != nil || again != slo {
			t.Errorf("%q comes back as %+v, %v, want %+v", slo, again, err, slo)
		}
	})
}

func TestViolations(t *testing.T) {
	all := SLO{TTFT: 100 * ms, TPOT: 10 * ms, E2E: 200 * ms}
	f := func(name string, slo SLO, r *Request, want string) {
		t.Helper()
		var broken []string
		for i, b := range slo.violations(r) {
			if b {
				broken = append(broken, sloNames[i])
			}
		}
		if got := strings.Join(broken, " "); got != want {
			t.Errorf("%s: broke %q, want %q", name, got, want)
		}
	}
	f("exactly at every bound", all, request("", 0, OK, 100*ms, 110*ms), "")
	f("TTFT", all, request("", 0, OK, 100*ms+1, 110*ms), "ttft")
	f("TPOT", all, request("", 0, OK, 100*ms, 110*ms+1), "tpot")
	f("e2e, and TPOT undefined", SLO{TPOT: 1, E2E: 200 * ms}, request("", 0, OK, 201*ms), "e2e")
	f("all three", all, request("", 0, OK, 150*ms, 300*ms), "ttft tpot e2e")
	f("no bound", SLO{}, request("", 0, OK, time.Hour, 2*time.Hour), "")
	f("failed, though it was quick", all, request("", 0, Truncated, ms), "error")
	f("failed without a bound", SLO{}, request("", 0, HTTP5xx), "error")
}
