package result

import (
	"fmt"
	"strings"
	"testing"

	"replayd/internal/measure"
	"replayd/internal/secret"
)

func TestFailures(t *testing.T) {
	f, out := NewSummary(nil, measure.SessionSLO{}), &strings.Builder{}
	f.Observe(&measure.Request{ID: "w/0/0", Outcome: measure.OK})
	f.Observe(&measure.Request{Outcome: measure.Cancelled})
	f.Observe(&measure.Request{Outcome: measure.Empty, Phase: measure.Warmup})
	l := measure.Ledger{Outcomes: map[measure.Outcome]int64{measure.OK: 9}}
	if err := f.WriteFailures(out, l, 0); err != nil || out.String() != "" {
		t.Errorf("want nothing of requests that did not fail, got %q, %v", out, err)
	}
	for i, o := range []measure.Outcome{measure.HTTP5xx, measure.Empty, measure.HTTP429, measure.HTTP429, measure.ConnectFailed} {
		f.Observe(&measure.Request{ID: fmt.Sprint("w/0/", i+1), Outcome: o, Error: secret.Text(fmt.Sprint("text ", i+1))})
		l.Outcomes[o]++
	}
	if err := f.WriteFailures(out, l, 0); err != nil {
		t.Fatal(err)
	}
	const want = `
the first request of each failure
http_429                w/0/3: text 3
connect                 w/0/5: text 5
empty                   w/0/2: text 2
http_5xx                w/0/1: text 1
`
	if out.String() != want {
		t.Errorf("want %s\n got %s", want, out)
	}
}
