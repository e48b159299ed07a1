package token

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"
)

// A Tokenizer counts the tokens of texts, and cuts texts to a number of tokens, like the reference implementation of its
// file format: Hugging Face's tokenizers 0.23, or tiktoken. It adds no special tokens. Special tokens in a text are
// recognized, except with a tiktoken file, which has none. An invalid UTF-8 byte counts as U+FFFD, as a JSON string would
// carry it.
//
// A Tokenizer does not change after it is opened. Goroutines may share it.
type Tokenizer struct {
	path   string
	format string // for display

	early, late added // found in the original text, and in the normalized text
	steps       []normalization
	lead        lead
	splits      []split
	parts       int // number of normalizers and pre-tokenizers
	growth      int // how many times as long a text may become
	inserted    int // bytes that are put before a text
	model       bpe

	walks sync.Pool  // of *walk
	large sync.Mutex // held by the walk of a text that may become larger than the others, since its buffers do too
}

// A lead is the change that a pre-tokenizer makes to a text before it splits the text.
type lead struct {
	text      string // inserted before a text that does not begin with it
	firstOnly bool   // only before the very first text, not after an added token
	spaces    string // replaces each space
}

// Path returns the file that was read.
func (t *Tokenizer) Path() string { return t.path }

// Kind describes the tokenizer: "byte-level BPE, 151643 tokens and 26 added ones".
func (t *Tokenizer) Kind() string {
	return fmt.Sprintf("%s, %d tokens and %d added ones", t.format, len(t.model.ids), len(t.early.tokens)+len(t.late.tokens))
}

// Count returns the number of tokens of a text. Its error says why a text cannot be counted: it becomes too large, or takes too
// long.
func (t *Tokenizer) Count(text []byte) (int, error) {
	text = valid(text)
	w := t.walk(len(text))
	defer w.done()
	w.whole(text)
	return w.tokens, w.err
}

// Encode returns the ids of a text's tokens. It has the errors of Count.
func (t *Tokenizer) Encode(text []byte) ([]int, error) {
	text = valid(text)
	w := t.walk(len(text))
	defer w.done()
	w.keep = true
	w.whole(text)
	return slices.Clone(w.merger.ids), w.err
}

// valid returns a text in which every invalid UTF-8 byte is replaced by U+FFFD.
func valid(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	return bytes.Map(func(r rune) rune { return r }, text)
}
