package measure

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// On the page an answer in one piece has an end and tokens, a cancelled request only its outcome, and one whose text was
// counted is an answer without a count of the server.
func TestPageOfWholeAndCancelledAnswers(t *testing.T) {
	reg, _, w := born(t)
	whole := request("", 0, OK, 700*ms)
	whole.Timeline.Whole = true
	whole.Usage.Output = 500
	cancelled := request("", 0, Cancelled, 10*ms, 20*ms)
	counted := request("", 0, OK, 10*ms, 20*ms)
	counted.Usage = Usage{Output: 7, Source: UsageText}
	counted.InputTokens, counted.OutputTokens = 100, 2
	w.Expected(3)
	for _, r := range []*Request{whole, cancelled, counted} {
		w.Sent()
		w.Finished(r)
	}
	p := gather(t, reg)
	f := func(want float64, family string, labels ...string) {
		t.Helper()
		if got := p.sum("replayd_"+family, labels...); got != want {
			t.Errorf("%s%v: want %v, got %v", family, labels, want, got)
		}
	}
	f(2, "requests_total", "outcome=ok")
	f(1, "requests_total", "outcome=cancelled")
	f(1, "ttft_seconds")
	f(1, "ttft_from_due_seconds")
	f(1, "tpot_seconds")
	f(1, "itl_seconds")
	f(2, "e2e_seconds")
	f(2, "e2e_from_due_seconds")
	f(3, "lateness_seconds")
	f(100, "tokens_total", "kind=prompt")
	f(507, "tokens_total", "kind=output")
	f(0, "length_mismatch_total")
	f(1, "responses_without_usage_total")
	f(2, "goodput_requests_total")
	f(0, "slo_violations_total", "slo=error") // nobody broke a promise to one who left
}

// The documentation of Sink lists the fields of a record, all of them and in their order.
func TestRecordFieldsAreDocumented(t *testing.T) {
	source, err := os.ReadFile("sink.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(source), "in this order:\n//\n")
	list, _, _ = strings.Cut(list, "\n//\n")
	var documented []string
	for line := range strings.Lines(list) {
		names, _, _ := strings.Cut(strings.TrimPrefix(line, "//\t"), "   ") // what they mean stands behind them, in a column
		documented = append(documented, strings.Split(strings.TrimSpace(names), ", ")...)
	}
	documented = slices.DeleteFunc(documented, func(name string) bool { return name == "" })
	var written []string
	for field := range strings.SplitSeq(strings.Trim(string(appendRecord(nil, &Request{})), "{}\n"), ",") {
		name, _, _ := strings.Cut(field, ":")
		written = append(written, strings.Trim(name, `"`))
	}
	if diff := cmp.Diff(documented, written); diff != "" {
		t.Errorf("sink.go and the record (-document +record):\n%s", diff)
	}
}
