//go:build engines

package engines_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"replayd/internal/token"

	"replayd/test/outside"
)

// counts are what one side says of the requests of a run.
type counts struct{ requests, prompt, output, cached float64 }

// The requests and tokens of a run are the same by its report, its records, the engine's figures in its files, and the
// engine's own counters. The engine is vLLM with a model of random weights, the load the first rows of the conversation
// trace, cut to the model's context. ENGINES_VLLM is their number, such as 500; without it the test is skipped.
func TestCountsOfVLLM(t *testing.T) {
	rows := outside.Knob(t, "ENGINES_VLLM", 0, strconv.Atoi)
	if rows == 0 {
		t.Skip("ENGINES_VLLM is not set")
	}
	traces := os.Getenv("REPLAYD_TRACES")
	if traces == "" {
		t.Skip("REPLAYD_TRACES is not set: it names the folder of the conversation trace")
	}
	dir := t.TempDir()
	url := vllm(t, dir, "--tokenizer", wordTokenizer(t, dir), "--enable-prompt-tokens-details")
	records, files := filepath.Join(dir, "records.jsonl"), filepath.Join(dir, "run")
	before, began := scrape(t, url), time.Now()
	report, err := exec.CommandContext(t.Context(), binary, "run", filepath.Join(traces, "mooncake_conversation.jsonl"),
		"--url", url, "--calibrate=false", // its request would be one more at the engine
		"--requests", strconv.Itoa(rows), "--arrival", "concurrency", "--concurrency", "16",
		"--max-input", "1600", "--max-output", "200", "--over-limit", "clip",
		"--artifact-dir", files, "--records", records, "--log.level", "warn").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, report)
	}
	took, after := time.Since(began), scrape(t, url)
	grown := func(family string) float64 { return after.Sum(family) - before.Sum(family) }
	engine := counts{
		grown("vllm:request_success_total"), grown("vllm:prompt_tokens_total"),
		grown("vllm:generation_tokens_total"), grown("vllm:prefix_cache_hits_total"),
	}
	t.Logf("%d rows in %v; preemptions %v", rows, took.Round(time.Second), grown("vllm:num_preemptions_total"))
	t.Logf("%-20s %9s %9s %9s %9s", "by", "requests", "prompt", "output", "cached")
	for _, told := range []struct {
		by string
		counts
	}{
		{"vLLM's counters", engine},
		{"the report", reported(t, string(report), files)},
		{"the records", recorded(t, records)},
		{"the engine's figures", figured(t, files)},
	} {
		t.Logf("%-20s %9.0f %9.0f %9.0f %9.0f", told.by, told.requests, told.prompt, told.output, told.cached)
		if told.counts != engine {
			t.Errorf("%s: want what vLLM counted", told.by)
		}
	}
	if engine.requests != float64(rows) || engine.cached == 0 || grown("vllm:num_preemptions_total") != 0 {
		t.Errorf("want each of %d rows answered, some of their tokens cached, and none preempted", rows)
	}
}

// vllm starts vLLM's server with further flags. What it needs is installed before, which takes minutes.
func vllm(t *testing.T, dir string, flags ...string) (url string) {
	t.Helper()
	listen := outside.Address(t)
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		t.Fatal(err)
	}
	p := outside.Start(t, filepath.Join(dir, "vllm.out"), "./vllm", append([]string{"serve", "0.32.0", port}, flags...)...)
	t.Cleanup(func() { // its engine is a process of its own, and ends with the server, unless that is killed
		_ = p.Cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.Done:
		case <-time.After(time.Minute):
		}
	})
	outside.UntilIn(t, 40*time.Minute, func() error {
		select {
		case <-p.Done:
			outside.Missing(t, p.Err, p.Said(t))
		default:
		}
		status, _, err := outside.Call(t.Context(), http.DefaultClient, http.MethodGet, "http://"+listen+"/health")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("/health: want 200, got %d", status)
		}
		return err
	})
	return "http://" + listen
}

// wordTokenizer writes a tokenizer to which each word of replayd's prompts is one token. The model knows fewer tokens
// than there are words, so words share them.
func wordTokenizer(t *testing.T, dir string) (folder string) {
	t.Helper()
	const tokens = 1024 // of the model, the first four of them special
	special := []string{"<unk>", "<s>", "</s>", "<pad>"}
	words, err := token.List("main")
	if err != nil {
		t.Fatal(err)
	}
	vocabulary, added := map[string]int{}, []map[string]any{}
	for i, s := range special {
		vocabulary[s] = i
		added = append(added, map[string]any{
			"id": i, "content": s, "special": true,
			"single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
		})
	}
	for i := range words.Len() {
		vocabulary[strings.TrimSpace(string(words.Append(nil, i)))] = len(special) + i%(tokens-len(special))
	}
	folder = filepath.Join(dir, "tokenizer")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]any{
		"tokenizer.json": map[string]any{
			"version": "1.0", "added_tokens": added, "pre_tokenizer": map[string]any{"type": "WhitespaceSplit"},
			"decoder": map[string]any{"type": "WordPiece", "prefix": "##", "cleanup": false},
			"model":   map[string]any{"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"},
		},
		"tokenizer_config.json": map[string]any{
			"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 2048,
			"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>",
			"chat_template": "{{ bos_token }}{% for m in messages %} {{ m['content'] }}{% endfor %}",
		},
	} {
		text, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(folder, name), string(text))
	}
	return folder
}

// reported returns what a run printed, with the cached tokens of its figures, which the report has as a share.
func reported(t *testing.T, report, files string) (c counts) {
	t.Helper()
	for line, to := range map[string]*float64{
		`^ok +(\d+)$`: &c.requests, `^input .* \((\d+)\)$`: &c.prompt, `^output .* \((\d+)\)$`: &c.output,
	} {
		found := regexp.MustCompile("(?m)" + line).FindStringSubmatch(report)
		if found == nil {
			t.Fatalf("want %s in the report:\n%s", line, report)
		}
		*to, _ = strconv.ParseFloat(found[1], 64) // digits
	}
	var figures struct {
		Cache struct {
			Source string  `json:"source"`
			Cached float64 `json:"cached_tokens"`
		} `json:"prefix_cache"`
	}
	read(t, filepath.Join(files, "profile_export_aiperf.json"), &figures)
	if figures.Cache.Source != "usage" {
		t.Errorf("want the cached tokens by the answers, got them by %q", figures.Cache.Source)
	}
	c.cached = figures.Cache.Cached
	return c
}

// recorded adds up the records.
func recorded(t *testing.T, path string) (c counts) {
	t.Helper()
	type record struct {
		ID      string  `json:"id"`
		Outcome string  `json:"outcome"`
		Prompt  float64 `json:"usage_prompt_tokens"`
		Output  float64 `json:"usage_output_tokens"`
		Cached  float64 `json:"usage_cached_tokens"`
	}
	lines, _ := outside.Lines[record](t, path)
	for _, r := range lines {
		if r.Outcome == "ok" {
			c.requests++
		}
		c.prompt, c.output, c.cached = c.prompt+r.Prompt, c.output+r.Output, c.cached+r.Cached
	}
	return c
}

// figured returns how much the engine's figures in the files of a run have grown.
func figured(t *testing.T, files string) counts {
	t.Helper()
	var pages struct {
		Metrics map[string]struct {
			Series []struct {
				Stats struct{ Total float64 }
			}
		}
	}
	read(t, filepath.Join(files, "server_metrics_export.json"), &pages)
	total := func(name string) (sum float64) {
		for _, s := range pages.Metrics["replayd_engine_"+name+"_total"].Series {
			sum += s.Stats.Total
		}
		return sum
	}
	return counts{
		total("requests_finished"), total("prompt_tokens"), total("generation_tokens"), total("prefix_cache_hits_tokens"),
	}
}

func read(t *testing.T, path string, to any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}
