package config

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// The form of the differences is a part of state files: evidence of a comparison lasts over an update only where it
// stays the same. The golden was written by the version before options had their keys in the rooms that they are of.
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
		w.Rows, w.KeepLane, w.WarmupLanes = 5, true, 2
		write(w, DefaultWorkload())
	}
	write(c.Comparisons[0], DefaultComparison())
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
