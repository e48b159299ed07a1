package outside

import (
	"bytes"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// A Recording is what a Prometheus would store of pages that it scrapes at regular instants. promtool can evaluate
// rules over it.
type Recording struct {
	Interval time.Duration // from one scrape to the next

	scrapes int
	series  map[string][]string // values as promtool's tests spell them, by name and labels
}

// Scrape adds the metrics of a registry, with the labels of a scrape configuration, and returns them as a page. It
// takes the classic form of histograms.
func (r *Recording) Scrape(from prometheus.Gatherer, labels map[string]string) (Page, error) {
	families, err := from.Gather()
	if err != nil {
		return nil, err
	}
	if r.series == nil {
		r.series = map[string][]string{}
	}
	page := Page{}
	for _, f := range families {
		page[f.GetName()] = f
		for _, m := range f.GetMetric() {
			own := maps.Clone(labels)
			for _, l := range m.GetLabel() {
				own[l.GetName()] = l.GetValue()
			}
			r.metric(f.GetName(), own, m)
		}
	}
	r.add("up", labels, 1)
	r.scrapes++
	return page, nil
}

func (r *Recording) metric(name string, labels map[string]string, m *dto.Metric) {
	h := m.GetHistogram()
	if h == nil {
		r.add(name, labels, m.GetCounter().GetValue()+m.GetGauge().GetValue()+m.GetUntyped().GetValue())
		return
	}
	r.add(name+"_sum", labels, h.GetSampleSum())
	r.add(name+"_count", labels, float64(h.GetSampleCount()))
	bucket := func(le string, count uint64) {
		labels["le"] = le
		r.add(name+"_bucket", labels, float64(count))
	}
	for _, b := range h.GetBucket() {
		bucket(strconv.FormatFloat(b.GetUpperBound(), 'g', -1, 64), b.GetCumulativeCount())
	}
	bucket("+Inf", h.GetSampleCount())
	delete(labels, "le")
}

// add appends the value of this scrape to a series. A series is
// stale at the first scrape that it misses, as in Prometheus.
func (r *Recording) add(name string, labels map[string]string, value float64) {
	var id strings.Builder
	id.WriteString(name)
	between := "{"
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&id, "%s%s=%q", between, label, labels[label])
		between = ", "
	}
	id.WriteString("}")
	values := r.pad(r.series[id.String()])
	r.series[id.String()] = append(values, strconv.FormatFloat(value, 'g', -1, 64))
}

func (r *Recording) pad(values []string) []string {
	for i := len(values); i < r.scrapes; i++ {
		if i > 0 && values[i-1] != "_" && values[i-1] != "stale" {
			values = append(values, "stale")
			continue
		}
		values = append(values, "_")
	}
	return values
}

// Max returns the largest value of the series with a name, or 0.
func (r *Recording) Max(name string) (most float64) {
	for id, values := range r.series {
		for _, text := range values {
			if v, err := strconv.ParseFloat(text, 64); err == nil && strings.HasPrefix(id, name+"{") {
				most = max(most, v)
			}
		}
	}
	return most
}

// Long returns the time from the first scrape to the last.
func (r *Recording) Long() time.Duration { return time.Duration(r.scrapes-1) * r.Interval }

// A Firing is one time span in which an alert fired.
type Firing struct {
	Alert, Severity, Workload string
	First                     time.Duration // from the first scrape to the begin of the firing
	For                       time.Duration // how long it fired
}

func (f Firing) String() string {
	return fmt.Sprintf("%s (%s) of %q from %v on, for %v", f.Alert, f.Severity, f.Workload, f.First, f.For)
}

// evaluation is the interval of rule evaluations over a recording.
const evaluation = time.Minute

// Alerts evaluates rule files with promtool each minute over the
// recording. It returns each firing of an alert, sorted by its begin.
func (r *Recording) Alerts(t *testing.T, promtool string, rules ...string) (all []Firing) {
	t.Helper()
	var file bytes.Buffer
	fmt.Fprintf(&file, "evaluation_interval: %v\nrule_files:\n", evaluation)
	for _, path := range rules {
		absolute, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&file, "  - %s\n", quoted(absolute))
	}
	fmt.Fprintf(&file, "tests:\n  - interval: %v\n    input_series:\n", r.Interval)
	for _, id := range slices.Sorted(maps.Keys(r.series)) {
		fmt.Fprintf(&file, "      - {series: %s, values: ", quoted(id))
		runs(&file, r.pad(r.series[id]))
		file.WriteString("}\n")
	}
	file.WriteString("    promql_expr_test:\n")
	// The tests expect nothing, so promtool prints what it got. The value is the instant.
	const firing = `max by (alertname, severity, workload) (timestamp(ALERTS{alertstate="firing"}))`
	for at := time.Duration(0); at <= r.Long(); at += evaluation {
		fmt.Fprintf(&file, "      - {expr: %s, eval_time: %v}\n", quoted(firing), at)
	}
	path := Write(t, t.TempDir(), "recording.yaml", file.String())
	said, err := exec.CommandContext(t.Context(), promtool, "test", "rules", path).CombinedOutput()
	got := firingLine.FindAllSubmatch(said, -1)
	if (err != nil) != (len(got) > 0) {
		t.Fatalf("promtool: %v\n%.4000s", err, said)
	}
	latest := map[string]int{} // index in all, by labels
	for _, m := range got {    // in the order of the instants
		labels := map[string]string{}
		for _, l := range alertLabel.FindAllSubmatch(m[1], -1) {
			labels[string(l[1])] = string(l[2])
		}
		seconds, err := strconv.ParseFloat(string(m[2]), 64)
		if err != nil {
			t.Fatalf("promtool: %v\n%s", err, m[0])
		}
		at := time.Duration(seconds * float64(time.Second))
		if i, before := latest[string(m[1])]; before && all[i].First+all[i].For == at {
			all[i].For += evaluation
			continue
		}
		latest[string(m[1])] = len(all)
		all = append(all, Firing{Alert: labels["alertname"], Severity: labels["severity"], Workload: labels["workload"], First: at, For: evaluation})
	}
	return all
}

// The format in which promtool prints a series that it got.
var (
	firingLine = regexp.MustCompile(`\{(alertname=[^}]*)\} ([0-9.eE+]+)`)
	alertLabel = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// quoted returns a YAML scalar.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// runs writes values. A run of equal values is written once, except for NaN and +Inf: promtool would read "NaNx9" as a word.
func runs(text *bytes.Buffer, values []string) {
	for i := 0; i < len(values); {
		n := 1
		for i+n < len(values) && values[i+n] == values[i] {
			n++
		}
		if i > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(values[i])
		switch {
		case values[i] == "NaN" || values[i] == "+Inf":
			text.WriteString(strings.Repeat(" "+values[i], n-1))
		case n > 1 && values[i] == "_":
			fmt.Fprintf(text, "x%d", n)
		case n > 1:
			fmt.Fprintf(text, "x%d", n-1)
		}
		i += n
	}
}
