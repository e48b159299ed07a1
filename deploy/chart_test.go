package deploy_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The systemd unit and the chart's container have the same limit of memory, and a replay does not swap.
func TestMemoryIsLimited(t *testing.T) {
	unit, err := os.ReadFile("systemd/replayd.service")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("helm/replayd/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		Resources struct{ Limits struct{ Memory string } }
	}
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	limit, mebibytes := strings.CutSuffix(values.Resources.Limits.Memory, "Mi")
	if !mebibytes {
		t.Fatalf("want a limit in Mi, got %q", values.Resources.Limits.Memory)
	}
	for _, line := range []string{"MemoryMax=" + limit + "M", "MemorySwapMax=0"} {
		if !strings.Contains(string(unit), "\n"+line+"\n") {
			t.Errorf("systemd/replayd.service: want %s", line)
		}
	}
}

// The chart has the rules, the dashboards and the sample as they are, each of them and nothing else, as files: what takes a chart
// from a Git repository leaves links out, and a checkout on Windows makes text of them.
func TestChartFiles(t *testing.T) {
	const folder = "helm/replayd/files"
	from := map[string]string{"sample.jsonl": "../internal/synth/sample.jsonl"}
	for _, pattern := range []string{"../alerts/*.yaml", "../dashboards/*.json"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) < 4 {
			t.Fatalf("%s: want 4 files and more, got %v, %v", pattern, paths, err)
		}
		for _, path := range paths {
			from[filepath.Base(path)] = path
		}
	}
	native, err := filepath.Glob("../native/*")
	if err != nil || len(native) == 0 {
		t.Fatalf("want files of native histograms, got %v, %v", native, err)
	}
	for _, path := range native {
		from["native/"+filepath.Base(path)] = path
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	if there, err := filepath.Glob(folder + "/native/*"); err != nil || len(there) != len(native) {
		t.Errorf("want %d native files, got %v, %v: make chart", len(native), there, err)
	}
	for _, e := range entries {
		if e.Name() == "native" {
			continue
		}
		if !e.Type().IsRegular() {
			t.Errorf("%s/%s: want a file, got %v: make chart", folder, e.Name(), e.Type())
		}
		if from[e.Name()] == "" {
			t.Errorf("%s/%s is of nothing that the chart should have: make chart", folder, e.Name())
		}
	}
	for name, path := range from {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(folder, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s/%s: want what %s is: make chart (%v)", folder, name, path, err)
		}
	}
}
