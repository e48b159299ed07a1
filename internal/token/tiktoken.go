package token

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// The patterns of tiktoken's encodings, from tiktoken_ext/openai_public.py of openai/tiktoken 0.9, in the older of its two
// equivalent spellings. Llama 3's and Qwen's are from their tokenizer.json.
const (
	gpt2Pattern   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	cl100kPattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwenPattern   = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	o200kPattern  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// encodings lists the known tiktoken files by the beginning of their name or by their number of tokens: tiktoken's own
// cache names files by a hash, and Llama 3's file is called tokenizer.model.
var encodings = []struct {
	name    string
	tokens  int
	pattern string
}{
	{"r50k_base", 50_256, gpt2Pattern},
	{"p50k_", 50_280, gpt2Pattern},
	{"cl100k_", 100_256, cl100kPattern},
	{"o200k_", 199_998, o200kPattern},
	{"llama3", 128_000, cl100kPattern},
	{"qwen", 151_643, qwenPattern},
}

// readRanks parses tiktoken's format: each line has a token in base64 and its rank, which is its id too.
func (t *Tokenizer) readRanks(data []byte) error {
	b := &t.model
	*b = bpe{ids: map[string]int32{}, byteLevel: true, unknown: none, ignoreMerges: true}
	line := 0
	for text := range bytes.Lines(data) {
		line++
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		code, rank, _ := strings.Cut(string(text), " ")
		word, err := base64.StdEncoding.DecodeString(code)
		if err != nil || len(word) == 0 {
			return fmt.Errorf("line %d: want a token in base64, a space and its rank, got %.40q", line, text)
		}
		id, err := strconv.ParseInt(rank, 10, 32)
		if err != nil || id < 0 || id > maxID {
			return fmt.Errorf("line %d: rank: want an integer from 0 to %d, got %.40q", line, maxID, rank)
		}
		if _, twice := b.ids[string(word)]; twice {
			return fmt.Errorf("line %d: token %.40q: it has a rank already", line, word)
		}
		if len(word) > maxTokenBytes {
			return fmt.Errorf("line %d: want tokens of at most %d bytes, got %d", line, maxTokenBytes, len(word))
		}
		if b.ids[string(word)] = int32(id); len(b.ids) > maxTokens {
			return fmt.Errorf("line %d: want at most %d tokens, got more", line, maxTokens)
		}
	}
	if len(b.ids) == 0 {
		return errors.New("want lines of tokens and their ranks, or JSON; got nothing")
	}
	var merges []pair
	for word, id := range b.ids {
		for i := 1; i < len(word); i++ {
			left, ok := b.ids[word[:i]]
			right, too := b.ids[word[i:]]
			if ok && too {
				merges = append(merges, pair{left: left, right: right, rank: id, becomes: id})
			}
		}
		if len(merges) > maxPairs {
			return fmt.Errorf("want at most %d pairs of tokens that make a token, got more", maxPairs)
		}
	}
	b.merges = makePairs(len(merges))
	for _, m := range merges {
		b.merges.set(m.left, m.right, m.rank, m.becomes)
	}
	for i := range b.bytes {
		id, ok := b.ids[string([]byte{byte(i)})]
		if !ok {
			return fmt.Errorf("want every byte among the tokens, got none of 0x%02x", i)
		}
		b.bytes[i] = id
	}
	for _, e := range encodings {
		if strings.HasPrefix(strings.ToLower(filepath.Base(t.path)), e.name) || len(b.ids) == e.tokens {
			p, err := compilePattern(e.pattern)
			t.format, t.splits = "tiktoken's "+strings.TrimSuffix(e.name, "_"), []split{{pattern: p}}
			return err
		}
	}
	return fmt.Errorf("which pattern belongs to this file of %d tokens? want a file named for its encoding (r50k_base, p50k_base, cl100k_base, o200k_base), got %s",
		len(b.ids), filepath.Base(t.path))
}
