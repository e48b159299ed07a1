package token

import (
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"
)

// A Tokenizer counts the tokens of texts, and cuts texts to a number of tokens, as the reference implementation of its file's format does:
// Hugging Face's tokenizers 0.23, or tiktoken. It adds no special tokens; those that are written out in a text are recognised, except
// by a tiktoken file, which has none. A byte that is not part of valid UTF-8 counts as U+FFFD, which is what a JSON
// string would carry in its place.
//
// It does not change once it is open, and any number of goroutines may use it.
type Tokenizer struct {
	path   string
	format string // for people

	early, late added // found in the text as it is, and in the normalized text
	steps       []normalization
	lead        lead
	splits      []split
	parts       int // normalizers and pre-tokenizers that were read
	model       bpe

	walks sync.Pool // of *walk
}

// A lead is what a pre-tokenizer does to a text before it takes it apart.
type lead struct {
	text      string // put in front of a text that does not begin with it already
	firstOnly bool   // of the very first text only, not of those that follow an added token
	spaces    string // put in the place of each space
}

// Path is the file that the tokenizer was read from.
func (t *Tokenizer) Path() string { return t.path }

// Kind says for people what the tokenizer is: "byte-level BPE, 151643 tokens and 26 added ones".
func (t *Tokenizer) Kind() string {
	return fmt.Sprintf("%s, %d tokens and %d added ones", t.format, len(t.model.ids), len(t.early.tokens)+len(t.late.tokens))
}

// Count is the number of tokens of a text.
func (t *Tokenizer) Count(text []byte) int {
	w := t.walk()
	defer t.walks.Put(w)
	w.whole(valid(text))
	return w.tokens
}

// Encode gives the ids of a text's tokens.
func (t *Tokenizer) Encode(text []byte) []int {
	w := t.walk()
	defer t.walks.Put(w)
	w.keep = true
	w.whole(valid(text))
	return slices.Clone(w.merger.ids)
}

// valid gives a text in which each byte that is not part of valid UTF-8 is U+FFFD.
func valid(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	out := make([]byte, 0, len(text)+len(text)/2)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		out = utf8.AppendRune(out, r)
		text = text[size:]
	}
	return out
}
