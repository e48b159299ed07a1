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

// docs/reference/metrics.md has a row for each value of the closed lists, and no other row.
func TestDocumentedLabelValues(t *testing.T) {
	const page = "../../docs/reference/metrics.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	rows := func(heading string) (values []string) {
		_, section, _ := strings.Cut(string(text), "\n### "+heading+"\n")
		section, _, _ = strings.Cut(section, "\n#")
		for line := range strings.Lines(section) {
			if first, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " |"); ok && strings.HasPrefix(line, "| `") {
				values = append(values, inBackticks(first)...)
			}
		}
		slices.Sort(values)
		return values
	}
	for heading, want := range map[string][]string{
		"How a request ends":       texts("outcome", allOutcomes),
		"Why a request is dropped": texts("reason", allDropReasons),
		"Limits of the guard":      texts("limit", allGuardLimits),
	} {
		if diff := cmp.Diff(want, rows(heading)); diff != "" {
			t.Errorf("%s, %s (-values +rows):\n%s", page, heading, diff)
		}
	}
}

// texts are values of a label with its name, which heads their table.
func texts[T ~string](label string, values []T) []string {
	all := []string{label}
	for _, v := range values {
		all = append(all, string(v))
	}
	slices.Sort(all)
	return all
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
