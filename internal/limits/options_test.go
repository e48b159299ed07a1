package limits

import (
	"math"
	"testing"
	"time"
)

// Each fault names its key.
func TestChecks(t *testing.T) {
	guard := Guard{OnMissingMetrics: BlindPause, ResumeAfter: time.Second}
	if f := guard.Check(); len(f) > 0 {
		t.Error(f)
	}
	guard = Guard{Waiting: -1, KVCacheUsage: 1.5, ErrorRatio: math.NaN(), OnMissingMetrics: "stop", ResumeAfter: -1}
	const want = `waiting: want an integer ≥ 0, got -1; kv_cache_usage: want 0 to 1, got 1.5; error_ratio: want 0 to 1, got NaN; ` +
		`on_missing_metrics: want pause or go, got "stop"; resume_after: want a duration ≥ 0, got -1ns`
	if got := guard.Check().Line(); got != want {
		t.Errorf("want %s\n got %s", want, got)
	}
	budget := Budget{PromptTokensPerHour: -2, OutputTokensPerDay: 1}
	if got, want := budget.Check().Line(), "prompt_tokens_per_hour: want an integer ≥ 0, got -2"; got != want {
		t.Errorf("want %s, got %s", want, got)
	}
}

// The load of several engines: the fullest queue, the fullest cache, the fewest pages, and no figure that one
// of them lacks.
func TestLoadOfSeveralEngines(t *testing.T) {
	l := Load{Waiting: 1, KVCacheUsage: 0.5, Engine: "vllm", Pages: 3}
	l.Add(Load{Waiting: 2, KVCacheUsage: 0.25, Engine: "vllm", Pages: 2})
	want(t, "two", l, Load{Waiting: 2, KVCacheUsage: 0.5, Engine: "vllm", Pages: 2})
	unknown := Unknown()
	unknown.Engine = "sglang"
	l.Add(unknown)
	if !math.IsNaN(l.Figure(Waiting)) || !math.IsNaN(l.Figure(KVCacheUsage)) || l.Engine != "" || l.Pages != 0 {
		t.Errorf("with one unknown: %+v", l)
	}
	if !math.IsNaN(l.Figure(ErrorRatio)) {
		t.Error("the error ratio is no figure of a page")
	}
	g := Guard{KVCacheUsage: 0.9, ErrorRatio: 0.5}
	if on := g.OnFigures(); len(on) != 1 || on[0] != KVCacheUsage || on[0].String() != "kv_cache_usage" {
		t.Errorf("got %v", on)
	}
}
