//go:build tokenizers

// Package tokenizers tests replayd's prompts with the tokenizers of real models: `make suite NAME=test-tokenizers`.
package tokenizers

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"replayd/internal/synth"
	"replayd/internal/token"
	"replayd/internal/trace"

	"replayd/test/outside"
)

// The models, by the names of their packages on npm. The word list "main" is valid for all of them.
var models = []string{"qwen3", "llama3_1", "gemma3"}

// prompts is the number of prompts counted, half of them as text and half as a chat.
const prompts = 200

// TestTextIsAsLongAsTheRow counts the prompts of /v1/completions. It counts the tokens of the text, without the token
// that some models put in front of it (Llama 3, Gemma 3).
func TestTextIsAsLongAsTheRow(t *testing.T) {
	count := newCount(t)
	rows, blockTokens := someRows(t)
	p, salt := prompter(t, blockTokens)
	for _, r := range rows[:prompts/2] {
		text, n := p.AppendText(nil, &r, salt, 0)
		if n != r.InputTokens {
			t.Errorf("row %d: says %d tokens, want %d", r.Number, n, r.InputTokens)
		}
		for _, model := range models {
			if got := count(model, false, text); got != r.InputTokens {
				t.Errorf("row %d, %s: %d tokens, want %d", r.Number, model, got, r.InputTokens)
			}
		}
	}
}

// TestChatIsAsLongAsTheRow counts whole conversations, rendered with the model's own template, after replayd's
// calibration: every prompt is shorter by the tokens that a one-word message costs beyond its one token.
func TestChatIsAsLongAsTheRow(t *testing.T) {
	count := newCount(t)
	rows, blockTokens := someRows(t)
	p, salt := prompter(t, blockTokens)
	overhead := map[string]int{}
	for _, model := range models {
		overhead[model] = count(model, true, []byte("about")) - 1
		if overhead[model] < 1 {
			t.Fatalf("%s: a template of %d tokens, want at least 1", model, overhead[model])
		}
	}
	for _, r := range rows[prompts/2:] {
		for _, model := range models {
			text, _ := p.AppendText(nil, &r, salt, overhead[model])
			want := max(r.InputTokens, overhead[model]+1) // a row shorter than the template is one word
			if got := count(model, true, text); got != want {
				t.Errorf("row %d, %s: %d tokens with the template's %d, want %d", r.Number, model, got, overhead[model], want)
			}
		}
	}
}

// TestMisshapenTextIsCountedAsSuch shows that the two tests above can fail: a first word that needs its space is more
// than one token if the template trims.
func TestMisshapenTextIsCountedAsSuch(t *testing.T) {
	count := newCount(t)
	for _, model := range []string{"llama3_1", "gemma3"} {
		good, bad := count(model, true, []byte("about zone")), count(model, true, []byte(" abandoning zone"))
		if bad <= good {
			t.Errorf("%s: %d tokens, want more than %d", model, bad, good)
		}
	}
}

func prompter(t *testing.T, blockTokens int) (*synth.Prompter, uint64) {
	t.Helper()
	words, err := token.List("main")
	if err != nil {
		t.Fatal(err)
	}
	p, err := synth.New(synth.Options{Words: words, Form: synth.Text, Seed: 42, BlockTokens: blockTokens})
	if err != nil {
		t.Fatal(err)
	}
	return p, synth.Salt("loop").At("tokenizers", time.Unix(1_700_000_000, 0), 0, nil)
}

// someRows returns rows spread evenly over the real conversation trace if REPLAYD_TRACES names its folder, otherwise
// over the bundled sample. Every second row is in the second half of the list.
func someRows(t *testing.T) (rows []trace.Record, blockTokens int) {
	t.Helper()
	path := "../../internal/synth/sample.jsonl"
	if folder := os.Getenv("REPLAYD_TRACES"); folder != "" {
		path = filepath.Join(folder, "mooncake_conversation.jsonl")
	}
	f, err := trace.Open(t.Context(), path, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, err := f.Rows(0)
	if err != nil {
		t.Fatal(err)
	}
	var all []trace.Record
	for {
		r, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if len(all) < prompts {
		t.Fatalf("%s: %d rows, want at least %d", path, len(all), prompts)
	}
	for _, first := range []int{0, 1} {
		for i := first; i < prompts; i += 2 {
			rows = append(rows, all[i*len(all)/prompts])
		}
	}
	return rows, f.Stats.BlockTokens
}

// A question is a question to count.mjs.
type question struct {
	Model string `json:"model"`
	Chat  bool   `json:"chat"`
	IDs   bool   `json:"ids"`
	Text  string `json:"text"`
}

// newCount starts count.mjs and returns a function that counts the tokens of a text.
func newCount(t *testing.T) func(model string, chat bool, text []byte) int {
	t.Helper()
	ask := newCounter(t)
	return func(model string, chat bool, text []byte) int {
		t.Helper()
		n, err := strconv.Atoi(string(ask(question{Model: model, Chat: chat, Text: string(text)})))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
}

// newCounter starts count.mjs and returns a function that asks it and returns its answer, a line.
func newCounter(t *testing.T) func(question) []byte {
	t.Helper()
	outside.Install(t)
	node := exec.Command("node", "count.mjs") // it ends with its input
	node.Stderr = os.Stderr
	in, err := node.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(in.Close(), node.Wait()); err != nil {
			t.Errorf("count.mjs: %v", err)
		}
	})
	ask, answers := json.NewEncoder(in), bufio.NewScanner(out)
	answers.Buffer(nil, 1<<20)
	return func(q question) []byte {
		t.Helper()
		if err := ask.Encode(q); err != nil {
			t.Fatal(err)
		}
		if !answers.Scan() {
			t.Fatalf("count.mjs gave no answer: %v", answers.Err())
		}
		return answers.Bytes()
	}
}
