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

	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/visitors"
	"replayd/test/measuretest"
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
	Link(reg, "", "", "")
	reg.MustRegister(visitors.NewDoor(func() int { return visitors.Most })) // of the page's server
	m := NewMeter(reg)
	o := levels
	o.Target = vllm(m)
	w := m.Workload(labels, o)
	serves(w, "Qwen/Qwen3-8B")
	script(w)
	w.Sent()
	w.Finished(&measure.Request{Outcome: measure.ServerAbort, Status: 200, Finish: "abort"})
	if diff := cmp.Diff(want, outside.Page(gather(t, reg)).Series()); diff != "" {
		t.Errorf("docs/reference/metrics.md and the page (-document +page):\n%s", diff)
	}
}

// The tables of outcomes, drop reasons and guard limits in docs/reference/metrics.md have all label values and no others.
func TestDocumentedLabelValues(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var guardLimits []string
	for l := range limits.NumLimits {
		guardLimits = append(guardLimits, l.String())
	}
	for heading, want := range map[string][]string{
		"### How a request ends": texts(allOutcomes),
		"### Drop reasons":       texts(allDropReasons),
		"### Guard limits":       guardLimits,
	} {
		got := firstCells(string(text), heading)
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("docs/reference/metrics.md, %s (-want +document):\n%s", heading, diff)
		}
	}
}

func texts[T ~string](values []T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}

// firstCells returns the names in backticks in the first column of the table under a heading, without the table's own heading.
func firstCells(text, heading string) (names []string) {
	section := ""
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			section = strings.TrimSpace(line)
		}
		if cells := strings.Split(line, "|"); section == heading && len(cells) > 2 {
			names = append(names, inBackticks(cells[1])...)
		}
	}
	return names[min(1, len(names)):]
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
