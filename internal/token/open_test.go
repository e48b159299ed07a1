package token

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// put writes content to path, or a copy of a small tokenizer if content is empty.
func put(t *testing.T, path, content string) string {
	t.Helper()
	data := []byte(content)
	if content == "" {
		var err error
		if data, err = os.ReadFile("testdata/digits.json"); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

// cache returns the path of Hugging Face's cache, which is found through the environment variable. The folder does
// not exist yet.
func cache(t *testing.T, variable, below string) string {
	t.Helper()
	for _, name := range []string{"HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"} {
		t.Setenv(name, "")
	}
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	if variable != "HOME" {
		t.Setenv(variable, dir)
	}
	return filepath.Join(dir, below)
}

func TestOpenFindsModelsInTheCache(t *testing.T) {
	for variable, below := range map[string]string{
		"HF_HUB_CACHE": "", "HF_HOME": "hub", "XDG_CACHE_HOME": "huggingface/hub", "HOME": ".cache/huggingface/hub",
	} {
		t.Run(variable, func(t *testing.T) {
			folder := filepath.Join(cache(t, variable, below), "models--Some--Model-1.5B")
			// In Hugging Face's layout, the file is a link to a blob.
			blob := put(t, filepath.Join(folder, "blobs", "0123"), "")
			put(t, filepath.Join(folder, "refs", "main"), "abc\n")
			want := filepath.Join(folder, "snapshots", "abc", "tokenizer.json")
			if err := errors.Join(os.MkdirAll(filepath.Dir(want), 0o700), os.Symlink(blob, want)); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(folder, "snapshots", "zzz", "tokenizer.json"), "{}") // another revision
			tok, err := Open("Some/Model-1.5B")
			if err != nil || tok.Path() != want {
				t.Fatalf("got %v, %v, want %s", tok, err, want)
			}
		})
	}
}

func TestOpenTakesTheNewestRevisionWithoutMain(t *testing.T) {
	folder := filepath.Join(cache(t, "HF_HOME", "hub"), "models--gpt2", "snapshots")
	old, newest := put(t, filepath.Join(folder, "b", "tokenizer.json"), ""), put(t, filepath.Join(folder, "a", "tokenizer.json"), "")
	when := time.Unix(1_700_000_000, 0)
	for path, at := range map[string]time.Time{old: when, newest: when.Add(time.Hour)} {
		if err := os.Chtimes(filepath.Dir(path), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if tok, err := Open("gpt2"); err != nil || tok.Path() != newest {
		t.Errorf("got %v, %v, want %s", tok, err, newest)
	}
}

func TestOpenTakesAFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "with [odd] *name")
	want := put(t, filepath.Join(dir, "tokenizer.json"), "")
	if tok, err := Open(dir); err != nil || tok.Path() != want {
		t.Errorf("got %v, %v, want %s", tok, err, want)
	}
	other := filepath.Join(t.TempDir(), "with [odd] *name")
	want = put(t, filepath.Join(other, "r50k_base.tiktoken"), allBytes())
	if tok, err := Open(other); err != nil || tok.Path() != want {
		t.Errorf("got %v, %v, want %s", tok, err, want)
	}
}

func TestOpenFindsNothing(t *testing.T) {
	hub := cache(t, "HF_HOME", "hub")
	put(t, filepath.Join(hub, "models--Some--Weights", "snapshots", "abc", "config.json"), "{}")
	put(t, filepath.Join(hub, "models--Some--Link", "refs", "main"), "../../../..")
	put(t, filepath.Join(hub, "up", "tokenizer.json"), "")
	empty := t.TempDir()
	for name, want := range map[string]string{
		"Qwen/Qwen3-0.6B":   `tokenizer "Qwen/Qwen3-0.6B": no tokenizer found: there is no such file, and no such model in ` + hub,
		"Some/Link":         `tokenizer "Some/Link": no tokenizer found: there is no such file, and no such model in ` + hub,
		"../up":             `tokenizer "../up": no tokenizer found: there is no such file, and no such model in ` + hub,
		"no/such/file.json": `tokenizer "no/such/file.json": no tokenizer found: there is no such file, and no such model in ` + hub,
		"a\x00b":            `tokenizer "a\x00b": no tokenizer found: there is no such file, and no such model in ` + hub,
		"":                  `tokenizer "": no tokenizer found: there is no such file, and no such model in ` + hub,
		"Some/Weights": filepath.Join(hub, "models--Some--Weights", "snapshots", "abc") +
			": no tokenizer found: want tokenizer.json or one .tiktoken file, got no tokenizer.json and 0 of the other",
		empty: empty + ": no tokenizer found: want tokenizer.json or one .tiktoken file, got no tokenizer.json and 0 of the other",
	} {
		if tok, err := Open(name); tok != nil || !errors.Is(err, ErrNotFound) || err.Error() != want {
			t.Errorf("%q: got %v, %v; want error %s", name, tok, err, want)
		}
	}
}

// A file that exists and is not a tokenizer gives another error, and no word list replaces it.
func TestOpenRefuses(t *testing.T) {
	const model = `"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]`
	for content, want := range map[string]string{
		"":  "want lines of tokens and their ranks, or JSON; got nothing",
		"{": "byte 1: unexpected end of JSON input",
		`{"model": {"type": "BPE", "vocab": {"a": 0]`: "byte 43: invalid character ']' after object key:value pair",
		`{}`: `model.type: want "BPE", got ""`,
		`{"model": {"type": "WordPiece", "vocab": {"a": 0}}}`:                                                                                              `model.type: want "BPE", got "WordPiece"`,
		`{"model": {"type": "Unigram", "vocab": [["a", -1.5]]}}`:                                                                                           `model.type: want "BPE", got "Unigram"`,
		`{"model": {"type": "BPE"}}`:                                                                                                                       "model.vocab: want tokens and their ids, got none\nmodel.merges: want pairs of tokens, got none",
		`{"model": {"type": "BPE", "vocab": {"a": "x"}}}`:                                                                                                  "model.vocab: want int32, got string",
		`{"model": {"type": "BPE", "vocab": {"a": 99999999999}}}`:                                                                                          "model.vocab: want int32, got number 99999999999",
		`{"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}}`:                                                                                     `model.vocab: want ids from 0 to 16777215, got -1 of "a"`,
		`{"model": {"type": "BPE", "vocab": {"a": 1}, "merges": ["a b"]}}`:                                                                                 `model.merges[0]: want two tokens that make a third one of the vocabulary, got "a" and "b"`,
		`{"model": {"type": "BPE", "vocab": {"a": 1}, "merges": ["ab"]}}`:                                                                                  `model.merges[0]: want two tokens with a space between them, got "ab"`,
		`{"model": {"type": "BPE", "vocab": {"a": 1}, "merges": [["a", "a"], ["a"]]}}`:                                                                     `model.merges[1]: want two tokens, got 1`,
		`{"model": {"type": "BPE", "vocab": {"a": 1}, "merges": [1]}}`:                                                                                     `model.merges: want string, got number`,
		`{` + model + `, "dropout": 0.1, "end_of_word_suffix": "</w>"}}`:                                                                                   "model.dropout: want none, got 0.1\n" + `model.end_of_word_suffix: want none, got "</w>"`,
		`{` + model + `, "unk_token": "?"}}`:                                                                                                               `model.unk_token: want a token of the vocabulary, got "?"`,
		`{` + model + `}, "added_tokens": [{"id": -5, "content": "x"}]}`:                                                                                   `added_tokens[0].id: want 0 to 16777215, got -5`,
		`{` + model + `}, "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]}}`:                                    `normalizer.normalizers[1].type: want Sequence, NFC, NFD, NFKC, NFKD, Prepend or Replace, got "Lowercase"`,
		`{` + model + `}, "normalizer": {"type": "Replace", "pattern": {}}}`:                                                                               `normalizer.pattern: want a String or a Regex, got neither`,
		`{` + model + `}, "normalizer": {"type": "Replace", "pattern": {"Regex": "\\w"}}}`:                                                                 `normalizer.pattern.Regex: unsupported pattern "\\w": \w`,
		`{` + model + `}, "pre_tokenizer": {"type": "BertPreTokenizer"}}`:                                                                                  `pre_tokenizer.type: want Sequence, ByteLevel, Split, Digits, Punctuation or Metaspace, got "BertPreTokenizer"`,
		`{` + model + `}, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Odd"}}`:                                               `pre_tokenizer.behavior: want Isolated, Removed, Contiguous, MergedWithPrevious or MergedWithNext, got "Odd"`,
		`{` + model + `}, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(?=a)"}, "behavior": "Isolated"}}`:                                      "pre_tokenizer.pattern.Regex: unsupported pattern \"(?=a)\": error parsing regexp: invalid or unsupported Perl syntax: `(?=`",
		`{` + model + `}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel", "add_prefix_space": false}, {"type": "Digits"}]}}`: `pre_tokenizer.pretokenizers[1]: want ByteLevel as the last one, got "Digits" after it`,
		`{` + model + `}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits"}, {"type": "ByteLevel"}]}}`:                            `pre_tokenizer.pretokenizers[1].add_prefix_space: want false where it is not the first, got true`,
		`{` + model + `}, "pre_tokenizer": {"type": "Metaspace", "replacement": "_", "prepend_scheme": "last"}}`:                                           `pre_tokenizer.prepend_scheme: want always, first or never, got "last"`,
		`{` + model + `}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [` + strings.Repeat(`{"type": "Digits"}, `, 64) + `{}]}}`:                 "pre_tokenizer.pretokenizers[63]: want at most 64 normalizers and pre-tokenizers, got more",
		"IQ== 0\nIg==":   `line 2: rank: want an integer from 0 to 16777215, got ""`,
		"!! 0":           `line 1: want a token in base64, a space and its rank, got "!! 0"`,
		"IQ== 0\nIQ== 1": `line 2: token "!": it has a rank already`,
		"IQ== 0":         "want every byte among the tokens, got none of 0x00",
		allBytes():       "which pattern belongs to this file of 260 tokens? want a file named for its encoding (r50k_base, p50k_base, cl100k_base, o200k_base), got file",
	} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if tok, err := Open(path); tok != nil || err == nil || errors.Is(err, ErrNotFound) || err.Error() != path+": "+want {
			t.Errorf("%.90s: got %v, %v; want error %s", content, tok, err, want)
		}
	}
	if tok, err := Open(os.DevNull); tok != nil || err == nil || err.Error() != "/dev/null: want a file or a folder, got Dc---------" {
		t.Errorf("got %v, %v", tok, err)
	}
}
