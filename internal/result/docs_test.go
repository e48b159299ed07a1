package result

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/measure"
	"replayd/test/outside"
)

const formats = "../../docs/reference/file-formats.md"

// The tables of docs/reference/file-formats.md have each field of a line of profile_export.jsonl once.
func TestDocumentedFieldsAreThoseOfTheExport(t *testing.T) {
	outside.HoldFields(t, "### profile_export.jsonl", fieldsOf(reflect.TypeFor[exportLine](), ""))
}

// fieldsOf lists the fields of a line with dots between their levels. The value and unit of a metric are no fields of
// their own.
func fieldsOf(of reflect.Type, at string) (names []string) {
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		inner := field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[exportValue]() && inner != reflect.TypeFor[exportValues]() {
			names = append(names, fieldsOf(inner, at+name+".")...)
		} else {
			names = append(names, at+name)
		}
	}
	return names
}

// The table of metrics in docs/reference/file-formats.md has each metric of a run with all figures once, with its unit
// and in the order of profile_export_aiperf.json.
func TestDocumentedMetricsAreThoseOfARun(t *testing.T) {
	rows, err := outside.Fields(formats, "### Figures: profile_export_aiperf.json", "metric")
	if err != nil {
		t.Fatal(err)
	}
	run := Run{
		Settings: Settings{GPUs: 1, SLO: measure.SLO{{Quantity: measure.TTFT, Limit: 1}}},
		Rows: []Row{{
			Outcome: measure.OK, Due: 1, Start: 2, First: 3, End: 5, TTFT: 1, Second: 1, Latency: 3, ITL: 1,
			Gaps: []float64{1}, Input: 1, Output: 3, Reasoning: 1,
			Prompt: measure.Length{Asked: 1, Counted: 1}, Answer: measure.Length{Asked: 3, Counted: 3},
		}},
		Sessions: []measure.Session{{Outcome: measure.SessionOK, Requests: 1, Prompt: 1, CacheReported: true}},
		Ledger: &measure.Ledger{
			Expected: 1, Outcomes: map[measure.Outcome]int64{measure.OK: 1}, Good: 1, Eligible: 1,
			Sessions: measure.Sessions{Begun: 1, Outcomes: map[measure.SessionOutcome]int64{measure.SessionOK: 1}, Good: 1},
		},
	}
	var documented, written [][2]string
	for _, row := range rows {
		documented = append(documented, [2]string{row[0], row[2]})
	}
	for _, m := range run.Statistics().Metrics {
		written = append(written, [2]string{m.Tag, m.Unit})
	}
	if diff := cmp.Diff(documented, written); diff != "" {
		t.Errorf("%s and the metrics (-document +run):\n%s", formats, diff)
	}
}
