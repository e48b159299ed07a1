package config

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"

	"replayd/internal/fault"
	"replayd/internal/gpu"
	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/openai"
	"replayd/internal/replay"
	"replayd/internal/scalar"
	"replayd/internal/schedule"
	"replayd/internal/scrape"
	"replayd/internal/trace"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func load(t *testing.T, path string, env ...string) (Config, error) {
	t.Helper()
	return Load(path, env, nil, func(string) {})
}

func TestGoodFile(t *testing.T) {
	c, err := load(t, "testdata/good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	vllm, conversation := c.Targets[0], c.Workloads[0]
	if got := string(vllm.HTTP.Authorization.Credentials); got != "sesame" {
		t.Errorf("credentials: want sesame, got %q", got)
	}
	if got := vllm.HTTP.HTTPHeaders.Headers["X-Team"].Values; !cmp.Equal(got, []string{"search"}) {
		t.Errorf("headers: got %v", got)
	}
	want := openai.Timeouts{Connect: 2 * time.Second, FirstToken: 90 * time.Second, Stall: 30 * time.Second, Total: 10 * time.Minute}
	if vllm.Timeouts != want {
		t.Errorf("timeouts: want what the file says over the defaults, got %v", vllm.Timeouts)
	}
	wantWorkload := Workload{
		Name: "conversation", Target: "vllm",
		Trace: Trace{
			Path: "conversation_trace.jsonl", Format: "auto", Columns: trace.Columns{Timestamp: "at", Input: "in, tokens"}, BlockTokens: 512, From: 5 * time.Minute, To: time.Hour,
			LengthLimits: replay.LengthLimits{MaxInput: 8192, OverLimit: "clip"},
		},
		Pattern:   schedule.Pattern{Arrival: "spread", RateOf: "requests", Burstiness: 1, Speed: 2},
		Repeat:    schedule.Repeat{Mode: "loop", Every: 24 * time.Hour, Align: "wall_clock", Offset: time.Hour},
		TurnDelay: schedule.TurnDelay{Scale: 1},
		Prompt:    Prompt{Form: "tokens", Words: "all", Seed: 7, Salt: "fixed:canary"},
		Sending:   replay.Sending{Lanes: 64, Overload: "drop", MaxWait: 5 * time.Second},
		Shard:     schedule.Shard{Index: 1, Of: 4},
		SLO: SLO{Bounds: Bounds{
			"ttft": "500ms", "tpot": "50ms", "e2e": "10s",
			"output_token_throughput_per_user": 20,
		}, Objective: 0.995, Session: measure.SessionSLO{Makespan: 10 * time.Minute}},
		Guard:  limits.Guard{Waiting: 8, KVCacheUsage: 0.9, ErrorRatio: 0.2, OnMissingMetrics: "go", ResumeAfter: time.Minute},
		Budget: limits.Budget{RequestsPerMinute: 60, PromptTokensPerHour: 1_000_000, OutputTokensPerDay: 500_000},
		Request: replay.RequestFields{
			CacheSalt: "loop", User: "replayd",
			Headers: map[string]string{"X-Tenant": "canary", "x-api.key": "sesame"},
		},
	}
	wantStages := []schedule.Stage{{Rate: 100, Over: time.Minute, Hold: 2 * time.Minute}, {Rate: 200}}
	if got := c.Workloads[2].Stages; !cmp.Equal(got, wantStages) {
		t.Errorf("stages: want %v, got %v", wantStages, got)
	}
	if d := cmp.Diff(wantWorkload, conversation); d != "" {
		t.Errorf("workload: -want +got\n%s", d)
	}
	wantRows := []scrape.Row{{Family: "my_queue", Quantity: "requests_waiting"}}
	if m := vllm.Metrics; m.Interval != 10*time.Second || m.Replicas != "vllm-headless:8000" || !reflect.DeepEqual(m.Map, wantRows) {
		t.Errorf("metrics: got %+v", m)
	}
	wantGPUs := []GPU{
		{
			Target: "vllm", DCGMExporter: "http://127.0.0.1:9400/metrics", Interval: 5 * time.Second,
			Select: gpu.Select{UUID: scalar.Words{"GPU-01234567"}, Pod: "vllm-*"},
		},
		{
			Target: "sglang", NvidiaSMI: "auto", Interval: 15 * time.Second,
			Select: gpu.Select{UUID: scalar.Words{"GPU-12345678", "GPU-9abcdef0"}},
		},
	}
	if d := cmp.Diff(wantGPUs, c.GPUs, cmpopts.IgnoreTypes(HTTP{})); d != "" {
		t.Errorf("gpus: -want +got\n%s", d)
	}
	if got := c.Workloads[1].Repeat.Align; got != "" {
		t.Errorf("align with once: want none, got %q", got)
	}
	if got := c.Targets[1].HTTP; !got.FollowRedirects || got.Authorization != nil {
		t.Errorf("http of a target without one: want prometheus/common's defaults, got %+v", got)
	}
}

// Each file in testdata/bad has one mistake, or several of one kind; the .err file has the whole message.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			_, err := load(t, file)
			if err == nil {
				t.Fatal("want an error, got none")
			}
			golden := strings.TrimSuffix(file, "yaml") + "err"
			if *update {
				if err := os.WriteFile(golden, []byte(err.Error()+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, readErr := os.ReadFile(golden)
			if readErr != nil {
				t.Fatal(readErr)
			}
			if d := cmp.Diff(string(want), err.Error()+"\n"); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestBadPaths(t *testing.T) {
	for path, want := range map[string]string{
		"testdata":         "testdata: want a file, got a directory",
		"testdata/no.yaml": "open testdata/no.yaml: no such file or directory",
	} {
		if _, err := load(t, path); err == nil || err.Error() != want {
			t.Errorf("%s: want %q, got %v", path, want, err)
		}
	}
	huge := filepath.Join(t.TempDir(), "huge.yaml")
	if err := os.WriteFile(huge, make([]byte, maxFile+1), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := load(t, huge); err == nil || !strings.Contains(err.Error(), "want at most 4194304 bytes") {
		t.Errorf("a file over the bound: got %v", err)
	}
}

// Flags override the environment, and the environment overrides the file. Unknown names are ignored.
func TestPrecedence(t *testing.T) {
	flags := func(args ...string) *pflag.FlagSet {
		f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		f.String("web.listen-address", ":9797", "")
		f.String("config", "", "")
		if err := f.Parse(args); err != nil {
			t.Fatal(err)
		}
		return f
	}
	env := []string{
		"REPLAYD_WEB__LISTEN=:1", "REPLAYD_DRAIN=1s", "REPLAYD_TRACES=/data", "REPLAYD_PORT=tcp://10.0.0.1:80", "HOME=/root",
	}
	var ignored []string
	note := func(name string) { ignored = append(ignored, name) }
	c, err := Load("testdata/good.yaml", env, flags(), note)
	if err != nil {
		t.Fatal(err)
	}
	if c.Web.Listen != ":1" || c.Drain != time.Second || c.Records.Path != "records.jsonl" {
		t.Errorf("want the environment over the file, got %+v, %v, %+v", c.Web, c.Drain, c.Records)
	}
	if want := []string{"REPLAYD_TRACES"}; !cmp.Equal(ignored, want) {
		t.Errorf("ignored: want %v, got %v", want, ignored)
	}
	ignored = nil
	if _, err := Load("testdata/good.yaml", []string{"REPLAYD_RECORD_PATHS_OF=x"}, flags(), note); err != nil ||
		!cmp.Equal(ignored, []string{"REPLAYD_RECORD_PATHS_OF (did you mean REPLAYD_RECORDS__PATH?)"}) {
		t.Errorf("one that is near: %v, %v", ignored, err)
	}
	for name, want := range map[string]string{ // a small difference is a misspelled key; variables of a Service are no keys
		"REPLAYD_WEB_LISTEN":  "REPLAYD_WEB_LISTEN: unknown variable (did you mean REPLAYD_WEB__LISTEN?)",
		"REPLAYD_DRIAN":       "REPLAYD_DRIAN: unknown variable (did you mean REPLAYD_DRAIN?)",
		"REPLAYD_RECORD_PATH": "REPLAYD_RECORD_PATH: unknown variable (did you mean REPLAYD_RECORDS__PATH?)",
		"REPLAYD_DRAIN":       `REPLAYD_DRAIN: want a duration with a unit, such as 30s or 5m, got ""`,
		"REPLAYD_LOG__LEVEL":  "", "REPLAYD_PORT": "", "REPLAYD_SERVICE_HOST": "", "REPLAYD_SERVICE_PORT_HTTP": "", "REPLAYD_PORT_9464_TCP_ADDR": "",
	} {
		_, err := Load("testdata/good.yaml", []string{name + "="}, flags(), func(string) {})
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	c, err = Load("testdata/good.yaml", env, flags("--web.listen-address=:2"), note)
	if err != nil || c.Web.Listen != ":2" {
		t.Errorf("want the flag over the environment, got %+v, %v", c.Web, err)
	}
	c, err = Load("testdata/good.yaml", []string{"REPLAYD_WEB__ENABLE_LIFECYCLE=true", "REPLAYD_RECORDS__KEEP=2", "REPLAYD_RECORDS__MAX_BYTES=1MiB"}, nil, note)
	if err != nil || !c.Web.EnableLifecycle || c.Records.Keep != 2 || c.Records.MaxBytes != 1<<20 {
		t.Errorf("want values of their types from the environment, got %+v, %+v, %v", c.Web, c.Records, err)
	}
	_, err = Load("testdata/good.yaml", []string{"REPLAYD_RECORDS__KEEP=few", "REPLAYD_WEB__ENABLE_PPROF=maybe"}, nil, note)
	if want := "REPLAYD_WEB__ENABLE_PPROF: want true or false, got maybe\nREPLAYD_RECORDS__KEEP: want an integer, got few"; err == nil || err.Error() != want {
		t.Errorf("want %q, got %v", want, err)
	}
	_, err = Load("testdata/good.yaml", []string{"REPLAYD_DRAIN=soon"}, nil, note)
	if want := `REPLAYD_DRAIN: want a duration with a unit, such as 30s or 5m, got "soon"`; err == nil || err.Error() != want {
		t.Errorf("want %q, got %v", want, err)
	}
}

func TestShardAuto(t *testing.T) {
	f := func(env string, of int, want scalar.Auto, wrong string) {
		t.Helper()
		t.Setenv("JOB_COMPLETION_INDEX", env)
		var faults fault.List
		s := schedule.Shard{Index: scalar.AutoValue, Of: of}
		if err := resolveShard(&s); err != nil {
			faults.Add("shard.index", "%v", err)
		}
		switch {
		case wrong == "" && (len(faults) > 0 || s.Index != want):
			t.Errorf("%q of %d: want %d, got %d, %v", env, of, want, s.Index, faults)
		case wrong != "" && (len(faults) != 1 || faults[0].Want != wrong):
			t.Errorf("%q of %d: want %q, got %v", env, of, wrong, faults)
		}
	}
	f("3", 4, 3, "")
	f("4", 4, 0, "want a shard index < 4, got 4 (from JOB_COMPLETION_INDEX)")
	f("x", 4, 0, `want a number in JOB_COMPLETION_INDEX, got "x"`)
	f("3", 1, 0, "") // a single shard has index 0 in any pod
}

// The largest value of each integer type is accepted exactly.
func TestLargestNumbers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "replayd.yaml")
	text := `
records: {max_bytes: 9223372036854775807}
targets: [{name: t, url: "http://127.0.0.1:8000"}]
workloads: [{name: w, trace: {path: a.jsonl, max_input: 9007199254740992.0}, lanes: 9223372036854775807, prompt: {seed: 18446744073709551615}}]
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := load(t, file)
	if err != nil {
		t.Fatal(err)
	}
	w := c.Workloads[0]
	if c.Records.MaxBytes != math.MaxInt64 || w.Lanes != math.MaxInt64 || w.Prompt.Seed != math.MaxUint64 || w.Trace.MaxInput != 1<<53 {
		t.Errorf("got %v, %+v", c.Records.MaxBytes, w)
	}
}

// Load never panics, and returns either an error or a valid configuration.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/*.yaml", "testdata/bad/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "replayd.yaml")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(path, nil, nil, func(string) {})
		if err != nil {
			return
		}
		if again := c.Check(); len(again) > 0 {
			t.Errorf("a configuration that was taken has faults: %v", c.Refuse(again))
		}
	})
}
