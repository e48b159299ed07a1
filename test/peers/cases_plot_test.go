//go:build peers

package peers_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// plots has the command lines that read files.
var plots = []peer{
	{name: "plot", typed: "aiperf plot", files: runs("artifacts"), judge: drawn("artifacts", wholeRun)},
	{name: "plot of two runs", typed: "aiperf plot --paths ./run1 ./run2", files: runs("run1", "run2"), judge: drawn(".", func(t *testing.T, page string) {
		contains(t, page, "2 runs", "run1", "run2", "intervals of 95 %", "time to first token", "output per user")
		pictures(t, page, 5)
	})},
	{name: "dashboard", typed: "aiperf plot --dashboard", files: runs("artifacts"), serves: "8050"},
	{name: "plot, dark", typed: "aiperf plot --theme dark", files: runs("artifacts"), judge: drawn("artifacts", func(t *testing.T, page string) {
		contains(t, page, `<html lang="en" data-theme="dark"`)
		wholeRun(t, page)
	})},
	{name: "plot elsewhere", typed: "aiperf plot --output ./my_plots", files: runs("artifacts"), judge: drawn("my_plots", wholeRun)},
	{name: "dashboard again", typed: "aiperf plot --dashboard", files: runs("artifacts"), serves: "8050"},
	{name: "dashboard on a port", typed: "aiperf plot --dashboard --port 8080", files: runs("artifacts"), serves: "8080"},
	{
		name:  "analysis of a trace",
		typed: "aiperf analyze-trace mooncake_trace.jsonl --output-file analysis.json",
		files: text("mooncake_trace.jsonl", `{"timestamp": 0, "input_length": 1024, "output_length": 20, "hash_ids": [1, 2]}
{"timestamp": 1000, "input_length": 1536, "output_length": 30, "hash_ids": [1, 2, 3]}
{"timestamp": 2000, "input_length": 1024, "output_length": 25, "hash_ids": [1, 2]}
{"timestamp": 3000, "input_length": 1536, "output_length": 40, "hash_ids": [2, 3, 4]}
{"timestamp": 4000, "input_length": 1024, "output_length": 22, "hash_ids": [1, 3]}
`),
		judge: func(t *testing.T, dir string, s seen) {
			got := artifact[map[string]any](t, dir, "analysis.json")
			for name, want := range map[string]float64{
				"total_requests": 5, "unique_prefixes": 7, "num_prefix_groups": 1, "cache_hit_rate": 2. / 3, "prefix_reuse_ratio": 7. / 12,
				"min_isl": 1024, "max_isl": 1536, "avg_isl": 1228.8, "min_osl": 20, "max_osl": 40, "avg_osl": 27.4,
			} {
				if v, ok := got[name].(float64); !ok || math.Abs(v-want) > 1e-10 {
					t.Errorf("%s: want %.10f, got %v", name, want, got[name])
				}
			}
			s.says(t, "analysis.json")
		},
	},
}

// drawn checks that a folder has one HTML report, that the command prints its path, and the content of the page.
func drawn(folder string, look func(*testing.T, string)) func(*testing.T, string, seen) {
	return func(t *testing.T, dir string, s seen) {
		var pages []string
		err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			if strings.HasSuffix(path, ".html") {
				pages = append(pages, path)
			}
			return err
		})
		if err != nil || len(pages) != 1 || filepath.Dir(pages[0]) != filepath.Join(dir, folder) {
			t.Fatalf("want one HTML report, in %s, got %q: %v", folder, pages, err)
		}
		page, err := os.ReadFile(pages[0])
		if err != nil {
			t.Fatal(err)
		}
		look(t, string(page))
		for _, outside := range []string{`src="http`, `href="http`, "url(http", "@import"} {
			if strings.Contains(string(page), outside) {
				t.Errorf("want a page that needs nothing from outside, got one with %s", outside)
			}
		}
		s.says(t, filepath.Join(folder, filepath.Base(pages[0])))
	}
}

// wholeRun checks the page of one small run.
func wholeRun(t *testing.T, page string) {
	t.Helper()
	contains(t, page, "40 requests", "time to first token", "inter-token latency", "request latency", "output, tokens", "time of sending", "Slices of")
	pictures(t, page, 10)
}

func contains(t *testing.T, page string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(page, want) {
			t.Errorf("want %q on the page, of %d bytes", want, len(page))
		}
	}
}

func pictures(t *testing.T, page string, least int) {
	t.Helper()
	if n := strings.Count(page, "<svg"); n < least {
		t.Errorf("want %d pictures at least, got %d", least, n)
	}
}
