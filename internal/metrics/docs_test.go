package metrics

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/measure"
	"replayd/internal/measure/measuretest"
	"replayd/test/outside"
)

// The tables of workloads and of the process in docs/reference/metrics.md list the series of the page.
func TestDocumentedSeriesAreThoseOnThePage(t *testing.T) {
	want, err := outside.Tables("../../docs/reference/metrics.md", "Workloads", map[string][]string{"series": threeLabels})
	if err != nil {
		t.Fatal(err)
	}
	process, err := outside.Tables("../../docs/reference/metrics.md", "The process", map[string][]string{"series": nil})
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(want, process)
	reg := prometheus.NewPedanticRegistry()
	NewProcess(reg, container, measuretest.Start, nil)
	m := NewMeter(reg)
	w := m.Workload(labels, WorkloadOptions{SLO: measuretest.SLO, Objective: 0.995, Shard: Shard{2, 4}, Trace: mooned, Target: vllm(m)})
	serves(w, "Qwen/Qwen3-8B")
	script(w)
	if diff := cmp.Diff(want, outside.Page(gather(t, reg)).Series()); diff != "" {
		t.Errorf("docs/reference/metrics.md and the page (-document +page):\n%s", diff)
	}
}

// docs/reference/metrics.md has the closed lists of label values word for word.
func TestDocumentedLabelValues(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/metrics.md")
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
	for _, o := range allOutcomes {
		if !strings.Contains(row("outcome"), "`"+string(o)+"`") {
			t.Errorf("docs/reference/metrics.md lacks the outcome %s", o)
		}
	}
	for _, r := range allDropReasons {
		if !strings.Contains(row("reason"), "`"+string(r)+"`") {
			t.Errorf("docs/reference/metrics.md lacks the reason %s", r)
		}
	}
	for _, l := range allGuardLimits {
		if !strings.Contains(row("limit"), "`"+string(l)+"`") {
			t.Errorf("docs/reference/metrics.md lacks the limit %s", l)
		}
	}
}

// The glossary has each term once, and only series that docs/reference/metrics.md documents.
func TestGlossary(t *testing.T) {
	words, err := os.ReadFile("../../docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	documented, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	series := regexp.MustCompile("`replayd_[a-z0-9_]+`").FindAllString(string(words), -1)
	if len(series) == 0 {
		t.Error("want series in the glossary, found none")
	}
	for _, name := range series {
		if !strings.Contains(string(documented), name) {
			t.Errorf("docs/glossary.md has %s, docs/reference/metrics.md does not", name)
		}
	}
	row := regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \| ([^|]*)\|$`)
	terms := map[string]bool{}
	for line := range strings.Lines(string(words)) {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| term ") {
			continue
		}
		cells := row.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if len(cells) < 3 || !strings.HasSuffix(cells[2], ".") {
			t.Errorf("want a term, a sentence and a third column, got %s", line)
			continue
		}
		if terms[cells[1]] {
			t.Errorf("%s: want it once", cells[1])
		}
		terms[cells[1]] = true
		if cells[1] != "outcome" && cells[1] != "drop reason" {
			continue
		}
		for _, name := range inBackticks(cells[2]) {
			if !slices.Contains(allOutcomes, measure.Outcome(name)) && !slices.Contains(allDropReasons, measure.DropReason(name)) {
				t.Errorf("%s: no outcome and no reason is called %s", cells[1], name)
			}
		}
	}
}

func inBackticks(text string) (names []string) {
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			names = append(names, part)
		}
	}
	return names
}
