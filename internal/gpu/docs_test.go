package gpu

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"replayd/test/outside"
)

// The tables in docs/reference/metrics.md list the series of the golden page, which has every series.
func TestDocumentedSeriesAreThoseOnThePage(t *testing.T) {
	want, err := outside.Tables("../../docs/reference/metrics.md", "The GPUs", map[string][]string{"series": sourceLabels, "figure": deviceLabels})
	if err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	page, err := parser.TextToMetricFamilies(bytes.NewReader(read(t, "metrics.golden")))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, outside.Page(page).Series()); diff != "" {
		t.Errorf("docs/reference/metrics.md and the page (-document +page):\n%s", diff)
	}
}
