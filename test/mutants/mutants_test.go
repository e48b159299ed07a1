//go:build linux && !race

// Package mutants_test reads thousands of files and pages that are mutated from good ones, in processes that may use 512 MiB. None of
// them ends the process: each gives a result, or an error that says where. The memory of the race detector would count too.
package mutants_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"replayd/internal/dataset"
	"replayd/internal/gpu"
	"replayd/internal/scrape"
	"replayd/internal/token"
	"replayd/internal/trace"

	"replayd/test/outside"
)

const maxMemory = 512 // MiB of a process

var binary string

func TestMain(m *testing.M) {
	if os.Getenv(child) != "" {
		os.Exit(m.Run())
	}
	os.Exit(outside.Main(m, &binary))
}

// child has the kind, the first mutant and how many, in a process that reads them.
const child = "MUTANTS_CHILD"

// A kind is a kind of input. It reads a mutant, which is in the file, and returns its error.
type kind struct {
	seeds []string // patterns of files
	more  []string
	read  func(t *testing.T, path string, data []byte) error
	named bool // an error names the file
}

var kinds = map[string]kind{
	"tokenizer": {
		seeds: []string{"internal/token/testdata/*.json"}, read: tokenizer, named: true,
		more: []string{`{"normalizer": {"type": "Sequence", "normalizers": [` + strings.Repeat(`{"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaa"},`, 2) +
			`{"type": "NFC"}]}, "model": {"type": "BPE", "vocab": {"a": 0, "aa": 1}, "merges": ["a a"]}}`},
	},
	"trace": {
		seeds: []string{"internal/trace/testdata/*.jsonl", "internal/synth/sample.jsonl"}, read: rows, named: true,
		more: []string{
			"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:04.0319600,3180,8\n",
			`{"timestamp":0,"session_id":"a","messages":[{"role":"user","content":"hello"}],"output_length":4}` + "\n",
		},
	},
	"dataset": {
		seeds: []string{"internal/dataset/bundled.jsonl"}, read: texts, named: true,
		more: []string{
			`[{"id":"a","conversations":[{"from":"human","value":"hello you there"},{"from":"gpt","value":"well and good, thanks"}]}]`,
			`{"session_id":"s","turns":[{"text":"hello","answer":"well","delay":10},{"texts":["a","b"],"output_length":9}]}` + "\n",
		},
	},
	"page": {seeds: []string{"internal/scrape/testdata/pages/*.txt", "internal/gpu/testdata/pages/*.txt"}, read: page},
}

// tokenizer counts texts with a tokenizer that can be opened.
func tokenizer(_ *testing.T, path string, _ []byte) error {
	t, err := token.Open(path)
	if err != nil {
		return err
	}
	text := []byte(strings.Repeat("aaaa the ab abab\n\n12 \u4e2d\u6587 e\u0301 <|end|> ", 2000))
	if _, err := t.Count(text); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	_, _, err = t.Cut(text, 500)
	return err
}

func rows(t *testing.T, path string, _ []byte) error {
	f, err := trace.Open(t.Context(), path, trace.Options{})
	if err != nil {
		return err
	}
	return errors.Join(f.Each(t.Context(), func(*trace.Record) {}), f.Close())
}

func texts(t *testing.T, path string, data []byte) error {
	formats := []dataset.Format{dataset.SingleTurn, dataset.MultiTurn, dataset.RandomPool}
	format := formats[len(data)%len(formats)]
	if bytes.HasPrefix(data, []byte("[")) {
		format = dataset.ShareGPT
	}
	_, err := dataset.Open(t.Context(), format, path, dataset.Options{Turns: len(data)%2 == 0})
	return err
}

// page reads a page as one of an engine and as one of GPUs.
func page(t *testing.T, _ string, data []byte) error {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write(data)
	}))
	defer server.Close()
	pages, err := scrape.NewFetcher(scrape.FetchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer pages.Close()
	known, err := scrape.NewVocabulary(scrape.Engines, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pages.Get(t.Context(), server.URL, func(string) bool { return true })
	if err == nil {
		known.Read(got, "")
	}
	_, other := gpu.NewExporter(pages, server.URL).Read(t.Context())
	return errors.Join(err, other)
}

// seedsOf reads the good inputs of a kind.
func seedsOf(t *testing.T, k kind) (all [][]byte) {
	t.Helper()
	for _, pattern := range k.seeds {
		found, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: no files, %v", pattern, err)
		}
		for _, path := range found {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, data)
		}
	}
	for _, m := range k.more {
		all = append(all, []byte(m))
	}
	return all
}

// TestMutants reads MUTANTS mutants in all, a fifth of each kind.
func TestMutants(t *testing.T) {
	if of := os.Getenv(child); of != "" {
		readAll(t, of)
		return
	}
	each := outside.Knob(t, "MUTANTS", 250, strconv.Atoi) / 5
	for name := range kinds {
		t.Run(name, func(t *testing.T) { inChild(t, name, each) })
	}
	t.Run("answer", func(t *testing.T) { answers(t, each) })
}

// inChild reads mutants in another process, which says what came of each, and how much memory it took.
func inChild(t *testing.T, name string, n int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestMutants$", "-test.timeout", "30m")
	c.Env = append(os.Environ(), child+"="+name+","+strconv.Itoa(n))
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	err := c.Run()
	began, reasons, read, refused, memory := "", map[string]int{}, 0, 0, ""
	for in := bufio.NewScanner(bytes.NewReader(said.Bytes())); in.Scan(); {
		word, rest, _ := strings.Cut(in.Text(), " ")
		switch word {
		case "BEGIN":
			began = rest
		case "READ":
			read++
		case "REFUSED":
			refused++
			reasons[rest]++
		case "MEMORY":
			memory = rest
		}
	}
	if err != nil || read+refused != n {
		t.Fatalf("%v at mutant %s, after %d of %d:\n%.3000s", err, began, read+refused, n, said.Bytes()[max(0, said.Len()-3000):])
	}
	t.Logf("%d mutants: %d read, %d refused for %d reasons, at most %s MiB", n, read, refused, len(reasons), memory)
	names := make([]string, 0, len(reasons))
	for reason := range reasons {
		names = append(names, reason)
	}
	slices.SortFunc(names, func(a, b string) int { return reasons[b] - reasons[a] })
	for _, reason := range names[:min(len(names), 8)] {
		t.Logf("%6d %s", reasons[reason], reason)
	}
	if refused == 0 || read == 0 {
		t.Error("want mutants of both fates")
	}
}

var varied = regexp.MustCompile(`"[^"]*"|[0-9]+|\x60[^\x60]*\x60`)

// readAll is the other process. It ends at once if it takes too much memory or too long for a mutant.
func readAll(t *testing.T, of string) {
	t.Helper()
	name, count, _ := strings.Cut(of, ",")
	n, err := strconv.Atoi(count)
	if err != nil {
		t.Fatal(err)
	}
	limit := syscall.Rlimit{Cur: 2 * maxMemory << 20, Max: 2 * maxMemory << 20} // with what Go reserves
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &limit); err != nil {
		t.Fatal(err)
	}
	var done atomic.Int64
	go watch(&done)
	k := kinds[name]
	seeds, path := seedsOf(t, k), filepath.Join(t.TempDir(), "mutant")
	for i := range n {
		fmt.Println("BEGIN", name, i)
		data := mutate(seeds, i)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		err := k.read(t, path, data)
		done.Add(1)
		if err == nil {
			fmt.Println("READ")
			continue
		}
		first, _, _ := strings.Cut(err.Error(), "\n")
		if k.named && !strings.Contains(first, "mutant") {
			t.Fatalf("%s %d: the error does not name the file: %s", name, i, first)
		}
		fmt.Printf("REFUSED %.110s\n", varied.ReplaceAllString(strings.ReplaceAll(first, path, "FILE"), "…"))
	}
	fmt.Println("MEMORY", resident("VmHWM", os.Getpid()))
}

// watch ends the process where its memory is over the limit, or nothing was done for outside.Patience.
func watch(done *atomic.Int64) {
	last, since := int64(-1), time.Now()
	for range time.Tick(10 * time.Millisecond) {
		if now := done.Load(); now != last {
			last, since = now, time.Now()
		}
		if mib := resident("VmRSS", os.Getpid()); mib > maxMemory || time.Since(since) > outside.Patience {
			fmt.Printf("%d MiB, %s\n", mib, time.Since(since))
			os.Exit(9)
		}
	}
}

// resident returns a figure of a process's memory, in MiB.
func resident(figure string, pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	m := regexp.MustCompile(figure + `:\s+(\d+) kB`).FindSubmatch(status)
	if err != nil || m == nil {
		return 0
	}
	kb, _ := strconv.Atoi(string(m[1]))
	return kb >> 10
}

// answers lets a server answer each request of a run with a mutant.
func answers(t *testing.T, n int) {
	t.Helper()
	seeds := seedsOf(t, kind{seeds: []string{"internal/openai/testdata/*.sse"}, more: []string{
		`{"choices":[{"index":0,"message":{"content":"a b c"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":3}}`,
	}})
	var next atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodGet || r.Header.Get("X-Request-Id") == "replayd/probe" {
			_, _ = io.WriteString(w, `{"data":[{"id":"m"}],"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}`)
			return
		}
		i := int(next.Add(1))
		w.Header().Set("Content-Type", []string{"text/event-stream", "application/json"}[min(i%8, 1)^1])
		if i%16 == 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = w.Write(mutate(seeds, i))
	}))
	defer server.Close()
	dir := t.TempDir()
	path := filepath.Join(dir, "trace.jsonl")
	if err := os.WriteFile(path, bytes.Repeat([]byte(`{"timestamp":0,"input_length":8,"output_length":4}`+"\n"), n), 0o600); err != nil {
		t.Fatal(err)
	}
	listen := outside.Address(t)
	p := outside.Start(t, filepath.Join(dir, "log"), binary, "run", path, "--url", server.URL, "--model", "m", "--concurrency", "8",
		"--tokenizer", "../../internal/token/testdata/byte_level.json", "--web.listen-address", listen, "--hold", "10m")
	seen := outside.See(t, "http://"+listen, "all requests ended", func(p outside.Page) bool {
		return p.Sum("replayd_requests_total") >= float64(n)
	})
	memory := resident("VmHWM", p.Cmd.Process.Pid)
	t.Logf("%d mutants: %v ok, at most %d MiB", n, seen.Sum("replayd_requests_total", "ok"), memory)
	if ok := seen.Sum("replayd_requests_total", "ok"); memory > maxMemory || memory == 0 || ok == 0 || ok == float64(n) {
		t.Errorf("want at most %d MiB, and answers of both fates", maxMemory)
	}
	p.Signal(t, syscall.SIGTERM)
	<-p.Done
}
