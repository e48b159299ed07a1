package measure

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"replayd/test/outside"
)

// The tables of workloads and of the process list what their page shows.
func TestDocumentedSeriesAreThoseOnThePage(t *testing.T) {
	want, err := outside.Tables("../../docs/metrics.md", "Workloads", map[string][]string{"series": threeLabels})
	if err != nil {
		t.Fatal(err)
	}
	process, err := outside.Tables("../../docs/metrics.md", "The process", map[string][]string{"series": nil})
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(want, process)
	reg := prometheus.NewPedanticRegistry()
	NewProcess(reg, container, start)
	m := NewMeter(reg)
	w := m.Workload(labels, WorkloadOptions{SLO: slo, Objective: 0.995, Shard: Shard{2, 4}, Trace: mooned, Target: vllm(m)})
	serves(w, "Qwen/Qwen3-8B")
	script(w)
	if diff := cmp.Diff(want, outside.Page(gather(t, reg)).Series()); diff != "" {
		t.Errorf("docs/metrics.md and the page (-document +page):\n%s", diff)
	}
}

// The closed lists of label values are on the page of documents word for word.
func TestDocumentedLabelValues(t *testing.T) {
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	row := func(label string) string {
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "| `"+label+"` |") {
				return line
			}
		}
		return ""
	}
	for _, o := range outcomes {
		if !strings.Contains(row("outcome"), "`"+string(o)+"`") {
			t.Errorf("docs/metrics.md lacks the outcome %s", o)
		}
	}
	for _, r := range dropReasons {
		if !strings.Contains(row("reason"), "`"+string(r)+"`") {
			t.Errorf("docs/metrics.md lacks the reason %s", r)
		}
	}
	for _, l := range guardLimits {
		if !strings.Contains(row("limit"), "`"+string(l)+"`") {
			t.Errorf("docs/metrics.md lacks the limit %s", l)
		}
	}
}
