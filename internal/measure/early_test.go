package measure

import "testing"

// An answer whose content came before its request has no latency, keeps its outcome, and is not judged.
func TestEarly(t *testing.T) {
	r := answered(OK, 0, 110*milli, 130*milli)
	r.Timeline.Early = true
	v := r.Values()
	for q := range NumQuantities {
		if timed := q.Unit() == Milliseconds && q != Lateness || q == PerUser; timed && v[q] == v[q] {
			t.Errorf("%v is %v", q, v[q])
		}
	}
	if v[OutputLength] != 3 || v[Lateness] != 0 {
		t.Errorf("%v tokens, lateness %v", v[OutputLength], v[Lateness])
	}
	if most, unclear := r.MostTPOT(); unclear {
		t.Errorf("TPOT is at most %v", most)
	}
	for gap := range r.ITL() {
		t.Errorf("a gap of %v", gap)
	}
	for _, slo := range []SLO{nil, {{TTFT, 1}}, {{OutputLength, 1}}} {
		if good, judged := slo.Good(r.Outcome, &v); good || judged {
			t.Errorf("%v: good %v, judged %v", slo, good, judged)
		}
	}
}
