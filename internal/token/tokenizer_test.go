package token

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// small opens a file of testdata. Each file has a handful of tokens, made up for these tests, and some of the steps
// and options of published tokenizers. test/tokenizers runs the reference over these files, and over real ones.
func small(t testing.TB, name string) sure {
	t.Helper()
	tok, err := Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return sure{tok}
}

func smallOnes(t testing.TB) map[string]sure {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.json")
	if err != nil || len(paths) != 11 {
		t.Fatalf("testdata has %d files, want 11: %v", len(paths), err)
	}
	all := map[string]sure{}
	for _, path := range paths {
		all[filepath.Base(path)] = small(t, filepath.Base(path))
	}
	return all
}

// The ids are those of Hugging Face's tokenizers 0.23.2, recorded by test/tokenizers.
func TestIdsAreTheRecordedOnes(t *testing.T) {
	all := smallOnes(t)
	f, err := os.Open("testdata/reference.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := 0
	for in := bufio.NewScanner(f); in.Scan(); lines++ {
		var want struct {
			File, Text string
			IDs        []int
		}
		if err := json.Unmarshal(in.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		tok := all[want.File]
		if got := tok.Encode([]byte(want.Text)); !slices.Equal(got, want.IDs) {
			t.Errorf("%s, %q:\n got %d\nwant %d", want.File, want.Text, got, want.IDs)
		}
		if got := tok.Count([]byte(want.Text)); got != len(want.IDs) {
			t.Errorf("%s, %q: counts %d, want %d", want.File, want.Text, got, len(want.IDs))
		}
	}
	if lines != 330 {
		t.Errorf("%d lines are recorded, want 330", lines)
	}
}

// Invalid UTF-8 counts like the replacement characters that encoding/json makes of it.
func TestInvalidBytesCountAsReplacementCharacters(t *testing.T) {
	for name, tok := range smallOnes(t) {
		for _, text := range []string{"a\xffb", "\xe4\xb8", "the \xf0\x9f\x91 the", "\x80\x81\x82", "\xed\xa0\x80"} {
			data, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			var sent string
			if err := json.Unmarshal(data, &sent); err != nil {
				t.Fatal(err)
			}
			if got, want := tok.Encode([]byte(text)), tok.Encode([]byte(sent)); !slices.Equal(got, want) {
				t.Errorf("%s, %q: got %d, want %d as of %q", name, text, got, want, sent)
			}
		}
	}
}

func TestManyGoroutinesCount(t *testing.T) {
	tok := small(t, "byte_level.json")
	texts := []string{"the word <|end|>", strings.Repeat("ab", 400), "e\u0301\u0301 the", "   the   1234"}
	var want []int
	for _, text := range texts {
		want = append(want, tok.Count([]byte(text)))
	}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 50 {
				for i, text := range texts {
					if got := tok.Count([]byte(text)); got != want[i] {
						t.Errorf("%.20q: %d tokens, want %d", text, got, want[i])
					}
					if cut, n := tok.Cut([]byte(text), 2); n != 2 || tok.Count(cut) != 2 {
						t.Errorf("%.20q cut to 2: %q, %d", text, cut, n)
					}
				}
			}
		})
	}
	wait.Wait()
}

func TestKind(t *testing.T) {
	tok := small(t, "prepend.json")
	if got, want := tok.Kind(), "SentencePiece BPE, 304 tokens and 3 added ones"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := tok.Path(), filepath.Join("testdata", "prepend.json"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
