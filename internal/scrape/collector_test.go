package scrape

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
)

// TestCollectorPage compares replayd's whole page about a busy engine with a golden file.
func TestCollectorPage(t *testing.T) {
	f, e := newFixture(), &server{}
	body, err := os.ReadFile("testdata/pages/vllm_0.32.0_done.txt")
	if err != nil {
		t.Fatal(err)
	}
	e.say(strings.TrimSuffix(string(body), "\n"))
	target := f.target(t, e, TargetOptions{Page: "http://engine:8000/metrics"})
	target.Show()
	one := target.endpoints[0]
	one.scrape(t.Context())
	s := one.engine.now()
	s.duration, s.at = 2*time.Millisecond, time.Time{} // age_seconds is not compared
	one.engine.state = s
	if problems, err := testutil.GatherAndLint(f.registry); err != nil || len(problems) > 0 {
		t.Errorf("want a page that promtool likes, got %v, %v", problems, err)
	}
	families, err := f.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&page, family); err != nil {
			t.Fatal(err)
		}
	}
	got := page.Bytes()
	if all := f.collector.Values(); len(all) != 1 || all[0].Target != "vllm" || !all[0].Up || len(all[0].Series) < 15 {
		t.Errorf("want the engine's series in memory, got %+v", all)
	} else {
		for _, s := range all[0].Series {
			if !strings.Contains(string(got), "\n# HELP "+s.Name+" "+s.Help+"\n") {
				t.Errorf("%s is in memory and not on the page", s.Name)
			}
		}
	}
	const golden = "testdata/collector.golden"
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
