package config

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// The form of the differences is a part of state files: evidence of a comparison lasts over an update only where it
// stays the same.
func TestFormOfDifferences(t *testing.T) {
	given, err := os.ReadFile("testdata/identity.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var raw map[string]any
	if err := yaml.Unmarshal(given, &raw); err != nil {
		t.Fatal(err)
	}
	c, faults := decode(raw)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	var got strings.Builder
	write := func(of, from any) {
		d, err := Differences(of, from)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.MarshalIndent(d, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		got.Write(append(text, '\n'))
	}
	write(c.Targets[0], DefaultTarget())
	for _, w := range c.Workloads {
		w.Rows, w.KeepLane, w.WarmupLanes, w.TurnDelay.Scale = 5, true, 2, 0.5
		s := &w.Synthetic
		s.InputStddev, s.OutputStddev, s.TurnsStddev, s.TurnDelayStddev = 2, 4, 7, 300*time.Microsecond
		write(w, DefaultWorkload())
	}
	one := c.Comparisons[0]
	one.ToleranceTail, one.ToleranceQueued, one.ToleranceBad = 0.2, 0.3, 0.4
	write(one, DefaultComparison())
	const golden = "testdata/identity.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got.String()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
