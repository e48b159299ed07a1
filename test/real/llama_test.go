//go:build real

// Package real tests replayd against third-party servers: `make suite NAME=test-real`.
package real

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

const (
	repository = "../.."

	slots         = 4
	contextTokens = 4096 // of each slot
	rowsSent      = 50
	maxInput      = 3000 // fits the context with maxOutput and the template
	maxOutput     = 64
	blockTokens   = 512
)

// TestLlamaServer replays the first rows of a trace, cut to a small model's context, with the real binary against a
// real engine. The engine's counters must show the numbers of tokens that the rows ask for.
func TestLlamaServer(t *testing.T) {
	llama := startLlama(t)
	replayd := filepath.Join(t.TempDir(), "replayd")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", replayd, "./cmd/replayd")
	build.Dir = repository
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, said)
	}
	trace, rows := cutTrace(t)

	for _, api := range []string{"chat", "completions"} {
		t.Run(api, func(t *testing.T) {
			before := llama.counters(t)
			file := filepath.Join(t.TempDir(), "records.jsonl")
			run := exec.CommandContext(t.Context(), replayd,
				"run", trace, "--url", llama.url, "--api", api, "--speed", "20", "--records", file)
			said, err := run.CombinedOutput()
			t.Logf("replayd run:\n%s", said)
			if err != nil {
				t.Fatalf("replayd run: %v, want exit 0", err)
			}
			records := readRecords(t, file)
			sent := check(t, rows, records)

			// The engine has one more request than there are rows: the probe that measures the tokens that the server
			// puts around a prompt. It is a text of one word that asks for one token.
			got := llama.counters(t)
			extra := tokens{got.prompt - before.prompt - sent.prompt, got.output - before.output - sent.output}
			overhead := records[0].Overhead
			want := tokens{prompt: overhead + 1, output: 1}
			if api == "chat" && overhead == 0 {
				t.Error("overhead_tokens: want the template's, got 0")
			}
			if extra != want {
				t.Errorf("llama-server counted %+v beyond what the records say, want %+v", extra, want)
			}
			t.Logf("%d rows: %d prompt tokens, %d output tokens, %d of the template each",
				len(records), sent.prompt, sent.output, overhead)
		})
	}
}

// A row of the trace, as in Mooncake's files.
type row struct {
	Timestamp int64    `json:"timestamp"`
	Input     int      `json:"input_length"`
	Output    int      `json:"output_length"`
	Blocks    []uint64 `json:"hash_ids,omitempty"`
}

// cutTrace writes the trace to send: the first rows of the real conversation trace if REPLAYD_TRACES names its folder,
// otherwise of the bundled sample, no longer than the model's context allows.
func cutTrace(t *testing.T) (path string, rows []row) {
	t.Helper()
	from := repository + "/internal/synth/sample.jsonl"
	if folder := os.Getenv("REPLAYD_TRACES"); folder != "" {
		from = filepath.Join(folder, "mooncake_conversation.jsonl")
	}
	f, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var cut bytes.Buffer
	for in, out := json.NewDecoder(f), json.NewEncoder(&cut); len(rows) < rowsSent; {
		var r row
		if err := in.Decode(&r); err != nil {
			t.Fatalf("%s, row %d: %v", from, len(rows), err)
		}
		r.Input, r.Output = min(r.Input, maxInput), min(r.Output, maxOutput)
		r.Blocks = r.Blocks[:min(len(r.Blocks), (r.Input+blockTokens-1)/blockTokens)]
		if err := out.Encode(r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	path = filepath.Join(t.TempDir(), "trace.jsonl")
	if err := os.WriteFile(path, cut.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, rows
}

// A record has the fields of a --records line that the test checks.
type record struct {
	Row      int    `json:"row"`
	Outcome  string `json:"outcome"`
	Error    string `json:"error"`
	Input    int    `json:"input_tokens"`
	Output   int    `json:"output_tokens"`
	Overhead int    `json:"overhead_tokens"`
	Prompt   int    `json:"usage_prompt_tokens"`
	Answer   int    `json:"usage_output_tokens"`
}

func readRecords(t *testing.T, path string) []record {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var records []record
	for in := json.NewDecoder(f); in.More(); {
		var r record
		if err := in.Decode(&r); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if r.Outcome != "" { // not a ledger
			records = append(records, r)
		}
	}
	if len(records) != rowsSent {
		t.Fatalf("%d records, want %d", len(records), rowsSent)
	}
	return records
}

type tokens struct{ prompt, output int }

// check expects one answer for every row, with the lengths that the row asks for, and sums up usage.
func check(t *testing.T, rows []row, records []record) (sent tokens) {
	t.Helper()
	seen := map[int]bool{}
	for _, r := range records {
		if seen[r.Row] || r.Row < 0 || r.Row >= len(rows) {
			t.Errorf("row %d: recorded twice, or not in the trace", r.Row)
			continue
		}
		seen[r.Row] = true
		want := rows[r.Row]
		if r.Outcome != "ok" {
			t.Errorf("row %d: outcome %s (%s), want ok", r.Row, r.Outcome, r.Error)
		}
		if r.Input != want.Input || r.Prompt != want.Input {
			t.Errorf("row %d: input_tokens %d, usage_prompt_tokens %d, want %d", r.Row, r.Input, r.Prompt, want.Input)
		}
		if r.Output != want.Output || r.Answer != want.Output {
			t.Errorf("row %d: output_tokens %d, usage_output_tokens %d, want %d", r.Row, r.Output, r.Answer, want.Output)
		}
		sent.prompt += r.Prompt
		sent.output += r.Answer
	}
	return sent
}

// A llama is a running llama-server.
type llama struct{ url string }

// startLlama installs llama-server, makes its model, and runs it with further flags on a free loopback port until the end of the test.
func startLlama(t *testing.T, flags ...string) llama {
	t.Helper()
	folder, err := filepath.Abs(repository + "/.cache/real")
	if err != nil {
		t.Fatal(err)
	}
	outside.Install(t, folder)
	program := filepath.Join(folder, "llama-server")
	model := filepath.Join(t.TempDir(), "tiny.gguf")
	gguf := exec.CommandContext(t.Context(), "go", "run", "./test/real/gguf",
		"-words", "internal/token/main.txt", "-context", strconv.Itoa(contextTokens), model)
	gguf.Dir = repository
	if said, err := gguf.CombinedOutput(); err != nil {
		t.Fatalf("gguf: %v\n%s", err, said)
	}

	_, port, _ := net.SplitHostPort(outside.Address(t))
	ctx, stop := context.WithCancel(context.Background()) // the test's own context ends before its cleanup
	// One thread: several threads busy-wait for each other, and
	// on a busy machine of 2 cores the rows took 9 times as long.
	server := exec.CommandContext(ctx, program, append([]string{
		"--model", model, "--alias", "tiny", "--host", "127.0.0.1", "--port", port,
		"--parallel", strconv.Itoa(slots), "--ctx-size", strconv.Itoa(slots * contextTokens), "--threads", "1",
		"--metrics", "--no-ui", "--offline",
	}, flags...)...)
	var log bytes.Buffer // read only after the end
	server.Stdout, server.Stderr = &log, &log
	server.Cancel = func() error { return server.Process.Signal(os.Interrupt) }
	server.WaitDelay = 10 * time.Second
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Wait() // interrupted by the test, so its status is meaningless
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		if t.Failed() {
			t.Logf("llama-server:\n%s", log.String())
		}
	})
	l := llama{"http://127.0.0.1:" + port}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	limit, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !l.healthy(limit) {
		select {
		case <-ended:
			t.Fatal("llama-server ended before it was ready")
		case <-limit.Done():
			t.Fatalf("llama-server is not ready: %v", limit.Err())
		case <-tick.C:
		}
	}
	return l
}

func (l llama) get(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(request)
}

func (l llama) healthy(ctx context.Context) bool {
	answer, err := l.get(ctx, "/health")
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// counters returns the numbers of tokens that the server has processed and generated since its start. Cached prompt
// tokens have a counter of their own.
func (l llama) counters(t *testing.T) tokens {
	t.Helper()
	answer, err := l.get(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	values := map[string]int{}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if value, err := strconv.ParseFloat(text, 64); err == nil {
			values[name] = int(value)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total", "llamacpp:tokens_predicted_total"} {
		if _, ok := values[name]; !ok {
			t.Fatalf("llama-server's /metrics has no %s", name)
		}
	}
	return tokens{
		prompt: values["llamacpp:prompt_tokens_total"] + values["llamacpp:prompt_tokens_cached_total"],
		output: values["llamacpp:tokens_predicted_total"],
	}
}
