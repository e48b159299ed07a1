package measure

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// documented is a row of docs/metrics.md.
type documented struct {
	Type   string
	Labels []string
}

// readMetricsPage reads the tables under the headings of docs/metrics.md that list our series. Those of a workload have the three labels too.
func readMetricsPage(t *testing.T) map[string]documented {
	t.Helper()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]documented{}
	heading := ""
	for line := range strings.Lines(string(text)) {
		if h, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
			heading = h
		}
		if !strings.HasPrefix(line, "| `replayd_") || heading != "Workloads" && heading != "The process" {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 5 {
			t.Fatalf("docs/metrics.md: want 5 cells, got %d: %s", len(cells), line)
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		d := documented{Type: cells[1]}
		if heading == "Workloads" {
			d.Labels = slices.Clone(threeLabels)
		}
		for label := range strings.SplitSeq(cells[3], ",") {
			if label = strings.Trim(label, " `"); label != "" {
				d.Labels = append(d.Labels, label)
			}
		}
		slices.Sort(d.Labels)
		name := strings.Trim(cells[0], "`")
		if _, twice := rows[name]; twice {
			t.Errorf("docs/metrics.md has %s twice", name)
		}
		if cells[2] == "" || cells[4] == "" {
			t.Errorf("docs/metrics.md: %s: want a unit and a meaning", name)
		}
		rows[name] = d
	}
	return rows
}

func TestDocumentedSeriesAreThoseOnThePage(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	NewProcess(reg, container, start)
	m := NewMeter(reg)
	m.TargetInfo("vllm", "Qwen/Qwen3-8B", "chat")
	script(m.Workload(labels, WorkloadOptions{SLO: slo, Trace: mooned}))
	shown := map[string]documented{}
	for name, family := range gather(t, reg) {
		if !strings.HasPrefix(name, "replayd_") {
			continue
		}
		d := documented{Type: strings.ToLower(family.GetType().String())}
		for _, l := range family.GetMetric()[0].GetLabel() {
			d.Labels = append(d.Labels, l.GetName())
		}
		slices.Sort(d.Labels)
		shown[name] = d
	}
	if diff := cmp.Diff(readMetricsPage(t), shown); diff != "" {
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
}
