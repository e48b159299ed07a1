package alerts_test

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"replayd/test/outside"
)

// recordedIn are the names in a text that a recording rule could have.
var recordedIn = regexp.MustCompile(`\b(fleet|instance|target|target_kind|workload|workload_outcome|workload_reason|workload_trace):replayd_\w+:\w+`)

// What is recorded costs every Prometheus that has the rules, each minute. So somebody reads it: an alert, a dashboard, a document that
// says what to ask, or a rule that is read itself. The tables of docs/explanation/correlation.md that explain each rule read none of them.
func TestEachRecordIsRead(t *testing.T) {
	reads := map[string]bool{}
	readBy := func(text string) {
		for _, name := range recordedIn.FindAllString(text, -1) {
			reads[name] = true
		}
	}
	for _, r := range rules(t, true) {
		readBy(r.Expr)
		for _, text := range r.Annotations {
			readBy(text)
		}
	}
	for _, pattern := range []string{"../dashboards/*.json", "../README.md", "../docs/*/*.md", "../deploy/*.md", "../deploy/*/*.md"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: want files, got %v, %v", pattern, paths, err)
		}
		for _, path := range paths {
			text := read(t, path)
			if filepath.Base(path) == "correlation.md" {
				_, text, _ = strings.Cut(text, "\n## TTFT is up")
			}
			readBy(text)
		}
	}
	records := rules(t, false)
	for range records { // from reader to read, as often as there can be rules between
		for _, r := range records {
			if reads[r.Record] {
				readBy(r.Expr)
			}
		}
	}
	for _, r := range slices.CompactFunc(records, func(a, b outside.Rule) bool { return a.Record == b.Record }) {
		if !reads[r.Record] {
			t.Errorf("%s is read by nothing", r.Record)
		}
	}
}

// Monitoring systems set some labels themselves, and take some away: of two engines that only such a label tells apart, one would be lost.
func TestNoLabelIsTakenAway(t *testing.T) {
	stored, _ := series(t)
	for name, labels := range stored {
		for _, taken := range []string{
			"cluster", "container", "endpoint", "env", "host", "instance", "job", "namespace", "node", "pod", "prometheus", "prometheus_replica",
			"receive", "receive_replica", "replica", "rule_replica", "ruler_replica", "service", "tenant_id",
		} {
			if slices.Contains(labels, taken) {
				t.Errorf("%s: want no label %s", name, taken)
			}
		}
	}
}

// Where a page is scraped each 60 s, a window of less than 5 minutes can have too few samples for a rate.
func TestWindowsHoldEnoughScrapes(t *testing.T) {
	for _, r := range append(rules(t, false), rules(t, true)...) {
		texts := slices.Collect(maps.Values(r.Annotations)) // some have queries of their own
		if err := outside.LongWindows(strings.Join(append(texts, r.Expr), "\n")); err != nil {
			t.Errorf("%s: %v", r.Record+r.Alert, err)
		}
	}
}

// Prometheus refuses the whole configuration if one file of the glob alerts/*.yaml is no rule file.
func TestTheGlobHoldsRuleFilesOnly(t *testing.T) {
	paths, err := outside.RuleFiles(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		decoder := yaml.NewDecoder(strings.NewReader(read(t, path)))
		decoder.KnownFields(true)
		var file struct{ Groups []yaml.Node }
		if err := decoder.Decode(&file); err != nil || len(file.Groups) == 0 {
			t.Errorf("%s: want groups of rules and nothing else, got %d groups, %v", path, len(file.Groups), err)
		}
	}
}
