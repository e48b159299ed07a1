package cli

import (
	"slices"
	"testing"
	"time"

	"replayd/internal/measure"
)

// A command line of vLLM's own documents is what it is there.
func TestVLLM(t *testing.T) {
	r, err := ordered(t, "--backend vllm --model m --served-model-name n --endpoint /v1/completions --random-input-len 100 --random-output-len 9 "+
		"--random-prefix-len 20 --goodput ttft:500 tpot:50 e2el:2000 --metric-percentiles 50,90 --temperature 0.3 --header x-a=b --random-range-ratio 0.0")
	if err == nil {
		t.Error("want --model and --served-model-name refused together")
	}
	r, err = ordered(t, "--backend vllm --served-model-name n --endpoint /v1/completions --random-input-len 100 --random-output-len 9 "+
		"--random-prefix-len 20 --goodput ttft:500 tpot:50 e2el:2000 --metric-percentiles 50,90 --temperature 0.3 --header x-a=b --random-range-ratio 0.0")
	if err != nil {
		t.Fatal(err)
	}
	target, w := r.Config.Targets[0], r.Config.Workloads[0]
	if s := w.Synthetic; s.InputTokens != 100 || s.OutputTokens != 9 || s.SystemTokens != 20 {
		t.Errorf("lengths: got %+v", s)
	}
	if target.API != "completions" || target.Model != "n" || target.Output != "exact" || target.Path != "/v1/completions" {
		t.Errorf("target: got %+v", target)
	}
	if got := w.Request.Headers["x-a"]; got != "b" {
		t.Errorf("header: got %q", got)
	}
	if len(target.ExtraBody) != 1 || target.ExtraBody["temperature"] == nil {
		t.Errorf("body: got %v", target.ExtraBody)
	}
	for q, want := range map[measure.Quantity]time.Duration{measure.TTFT: 500 * time.Millisecond, measure.TPOT: 50 * time.Millisecond, measure.E2E: 2 * time.Second} {
		if got := r.SLO.Limit(q); got != want.Seconds()*1000 {
			t.Errorf("%v: got %v, want %v", q, got, want)
		}
	}
}

// Words of flags that take several, and switches that look like them.
func TestBareWords(t *testing.T) {
	for _, c := range [][2]string{
		{"--gpu-telemetry --artifact-dir x", "--gpu-telemetry=dashboard --artifact-dir x"},
		{"--gpu-telemetry", "--gpu-telemetry=dashboard"},
		{"--gpu-telemetry n1:9400 n2:9400 t.jsonl", "--gpu-telemetry n1:9400 --gpu-telemetry n2:9400 t.jsonl"},
		{"--goodput ttft:1 tpot:2 t.jsonl", "--goodput ttft:1 --goodput tpot:2 t.jsonl"},
		{"--header --isl 3", "--header --isl 3"},
	} {
		if got := InWords(words(c[0])); !slices.Equal(got, words(c[1])) {
			t.Errorf("%s: got %q", c[0], got)
		}
	}
}

// A flag of one value takes no second one, and flags that change nothing are noted.
func TestGivenTwice(t *testing.T) {
	for line, want := range map[string]string{
		"--url a:1 --url b:1":                  "--url: want one value, got two by giving it twice",
		"--isl 5 --prompt-input-tokens-mean 6": "--isl: want one value, got two by giving it twice",
		"--isl 5 --isl 5":                      "",
		"--isl 5 --extra-inputs a:1 --extra-inputs b:1 --goodput ttft:1s --goodput e2e:2s": "",
	} {
		_, c, _, err := typed(line)
		got := ""
		if err != nil {
			got = FlagError(c, err).Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
	o, _, _, err := typed("--url a:1 --isl 5 --ui simple --workers-max 3 --no-gpu-telemetry --gpu-telemetry=dashboard")
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.Order(nil)
	var noted []string
	for _, n := range o.Notes {
		noted = append(noted, n[0])
	}
	if want := words("--ui --workers-max --no-gpu-telemetry --gpu-telemetry"); err != nil || !slices.Equal(noted, want) {
		t.Errorf("notes of %v, %v; want %v", noted, err, want)
	}
}

// The grace period holds with AIPerf's duration alone.
func TestGrace(t *testing.T) {
	for line, want := range map[string]time.Duration{
		"--isl 5 --benchmark-duration 3":                              30 * time.Second,
		"--isl 5 --benchmark-duration 3 --benchmark-grace-period 0.5": time.Second / 2,
		"--isl 5 --benchmark-duration 3 --benchmark-grace-period inf": -1,
		"--isl 5 --duration 3s":                                       -1,
	} {
		o, _, _, err := typed(line)
		if err != nil {
			t.Fatal(err)
		}
		_, err = o.Order(nil)
		if err != nil || o.Cut != (want >= 0) || o.Cut && o.Grace != want {
			t.Errorf("%s: cut %v after %v, %v; want %v", line, o.Cut, o.Grace, err, want)
		}
	}
}
