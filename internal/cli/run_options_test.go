package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/internal/config"
	"replayd/internal/openai"
)

// next: is the next boundary that is not about to pass.
func TestStartInstant(t *testing.T) {
	at := func(text string) time.Time {
		instant, err := time.Parse(time.RFC3339Nano, "2026-01-02T"+text+"Z")
		if err != nil {
			t.Fatal(err)
		}
		return instant
	}
	for _, c := range [][3]string{ // --start, now, want
		{"next:1m", "10:00:00", "10:01:00"},
		{"next:1m", "10:00:59.7", "10:01:00"},
		{"next:1m", "10:00:59.75", "10:02:00"},
		{"next:1m", "10:00:59.999", "10:02:00"},
		{"next:1s", "10:00:00", "10:00:01"},
		{"2026-01-02T10:00:00Z", "11:00:00", "10:00:00"},
	} {
		if got, err := StartInstant(c[0], at(c[1])); err != nil || !got.Equal(at(c[2])) {
			t.Errorf("%s at %s: want %s, got %v, %v", c[0], c[1], c[2], got, err)
		}
	}
	for _, bad := range []string{"next:", "next:0s", "next:soon", "10:00"} {
		if got, err := StartInstant(bad, at("10:00:00")); err == nil {
			t.Errorf("%s: want an error, got %v", bad, got)
		}
	}
}

// The API follows from the address where no flag gives one, for the targets too that are only read.
func TestAPIOfAddress(t *testing.T) {
	for line, want := range map[string]openai.API{
		"--url h:1":                                openai.Chat,
		"--url h:1/v1/completions":                 openai.Completions,
		"--url h:1/v1/chat/completions":            openai.Chat,
		"--url h:1 --endpoint-path /d/completions": openai.Completions,
		"--url h:1 --api completions":              openai.Completions,
		"--url h:1 --api completions --isl 5":      openai.Completions,
		"--url h:1/v1/completions --isl 5 --server-metrics s:2 --gpu-telemetry n:3": openai.Completions,
		"--url h:1 --isl 5 --endpoint v1/completions":                               openai.Completions,
		"--url h:1/v1/completions --isl 5 --endpoint-type completions":              openai.Completions,
		"--url h:1 --trace-path t.jsonl --api completions":                          openai.Completions,
		"--url h:1/v1/completions --trace-path t.jsonl":                             openai.Completions,
	} {
		if !strings.Contains(line, "--isl") && !strings.Contains(line, "trace-path") {
			line += " t.jsonl"
		}
		if r, err := ordered(t, line); err != nil || r.Config.Targets[0].API != want {
			t.Errorf("%s: want %s, got %s, %v", line, want, r.Config.Targets[0].API, err)
		}
	}
	const both = "--url: ends in /completions, which is api completions, and api is chat: " +
		"want api completions, or an address without it"
	if _, err := ordered(t, "--url h:1/v1/completions --api chat t.jsonl"); err == nil || err.Error() != both {
		t.Errorf("want %s, got %v", both, err)
	}
}

// The rows of --metrics-map are those of the server's page and of further pages.
func TestMetricsMap(t *testing.T) {
	r, err := ordered(t, "t.jsonl --url http://a:1 --metrics-map my_queue=requests_waiting --metrics-map slots=kv_cache_usage_ratio --server-metrics http://b:1/stats")
	if err != nil {
		t.Fatal(err)
	}
	want, err := config.RowsOf([]string{"my_queue=requests_waiting", "slots=kv_cache_usage_ratio"})
	if err != nil || want[1].Family != "slots" || want[1].Quantity != "kv_cache_usage_ratio" {
		t.Fatalf("got %+v, %v", want, err)
	}
	for _, of := range r.Config.Targets {
		if !slices.Equal(of.Metrics.Map, want) {
			t.Errorf("%s: want the rows %+v, got %+v", of.Name, want, of.Metrics.Map)
		}
	}
}
