package docs_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.yaml.in/yaml/v3"

	"replayd/internal/config"
	"replayd/internal/daemon"
)

var blocks = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")

// An example is a configuration with the traces that it names.
type example struct {
	place     string
	workloads []map[string]any
}

// examples returns the configurations of the documents, of deploy and of the chart's values.
func examples(t *testing.T) (all []example) {
	t.Helper()
	texts := map[string]string{}
	for path, text := range pages(t) {
		for i, block := range blocks.FindAllStringSubmatch(text, -1) {
			texts[fmt.Sprintf("%s, block %d", path, i+1)] = block[1]
		}
	}
	for _, pattern := range []string{
		"docs/*.yaml", "deploy/*.yaml", "deploy/*/*.yaml", "deploy/kubernetes/*/*.yaml", "deploy/helm/replayd/values.yaml",
		"deploy/helm/replayd/ci/*.yaml",
	} {
		paths, err := filepath.Glob(filepath.Join("..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[path] = string(text)
		}
	}
	for place, text := range texts {
		n := len(all)
		for file := yaml.NewDecoder(strings.NewReader(text)); ; {
			var values struct {
				Workloads []map[string]any `yaml:"workloads"`
				Config    struct {
					Workloads []map[string]any `yaml:"workloads"`
				} `yaml:"config"`
				Canary map[string]any `yaml:"canary"`
			}
			if err := file.Decode(&values); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				continue // no configuration has such a document: the count below shows it
			}
			found := slices.Concat(values.Workloads, values.Config.Workloads)
			if values.Canary != nil {
				found = append(found, values.Canary)
			}
			if len(found) > 0 {
				all = append(all, example{place, found})
			}
		}
		if strings.Contains(text, "workloads:\n") && n == len(all) {
			t.Errorf("%s: want its workloads read, got none", place)
		}
	}
	return all
}

var outlook = regexp.MustCompile(`^canary: (?:next request due at \S+, in (\S+)|` +
	`first request due (\S+) after the target has answered|requests are due .*?)(?:, (\S+) % of the loop without rows)?$`)

// Each example sends a request within a minute, whenever it is started, and at least nine tenths of its loop are
// without gaps. A workload of cron says itself when it sends.
func TestExamplesSendAtOnce(t *testing.T) {
	traces := t.TempDir()
	hour := filepath.Join(traces, "hour.jsonl")
	var rows strings.Builder
	for i := range 11_800 { // like the published conversation trace: 10 rows each 3 s, for 58m56.999s
		fmt.Fprintf(&rows, `{"timestamp": %d, "input_length": 1, "output_length": 1, "hash_ids": [1]}`+"\n", min(i/10*3000, 3_536_999))
	}
	if err := os.WriteFile(hour, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	all := examples(t)
	for _, e := range all {
		for _, w := range e.workloads {
			w["name"], w["target"] = "canary", "engine"
			delete(w, "shard") // its rows are a part of those
			if w["synthetic"] == nil {
				trace, _ := w["trace"].(map[string]any)
				if trace == nil {
					trace = map[string]any{}
				}
				path, _ := trace["path"].(string)
				switch trace["path"] = hour; {
				case filepath.Base(path) == "trace.jsonl": // half a minute
					trace["path"] = "../deploy/kubernetes/sidecar/trace.jsonl"
				case filepath.Base(path) == "sample.jsonl", path == "" && strings.HasSuffix(e.place, "values.yaml"):
					trace["path"] = "../deploy/helm/replayd/files/sample.jsonl"
				}
				w["trace"] = trace
			}
			repeat, _ := w["repeat"].(map[string]any)
			if repeat["mode"] == "cron" {
				continue
			}
			text, err := yaml.Marshal(map[string]any{
				"targets": []any{map[string]any{"name": "engine", "url": "http://127.0.0.1:1"}}, "workloads": []any{w},
			})
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "replayd.yaml")
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := config.Load(file, nil, nil, func(string) {})
			if err != nil {
				t.Errorf("%s: %v", e.place, err)
				continue
			}
			for _, hhmm := range []string{"00h10m", "12h00m", "23h30m"} {
				sendsAtOnce(t, e.place+" at "+hhmm, c, hhmm)
			}
		}
	}
	if len(all) < 12 {
		t.Errorf("got %d examples, want 12 or more", len(all))
	}
}

// sendsAtOnce checks a configuration as if it was that time of day.
func sendsAtOnce(t *testing.T, what string, c config.Config, at string) {
	synctest.Test(t, func(t *testing.T) { // the bubble's clock begins at midnight UTC
		after, err := time.ParseDuration(at)
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(after)
		said, err := daemon.Outlook(t.Context(), c, slog.New(slog.DiscardHandler), nil)
		if err != nil || len(said) != 1 {
			t.Fatalf("%s: got %q, %v", what, said, err)
		}
		m := outlook.FindStringSubmatch(said[0])
		if m == nil {
			t.Fatalf("%s: got %q", what, said[0])
		}
		if wait, _ := time.ParseDuration(m[1] + m[2]); wait > time.Minute {
			t.Errorf("%s: %s: want a request within a minute", what, said[0])
		}
		if idle, _ := strconv.ParseFloat(m[3], 64); idle > 10 {
			t.Errorf("%s: %s: want at most a tenth of it without rows", what, said[0])
		}
	})
}
