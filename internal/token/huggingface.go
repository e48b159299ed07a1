package token

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// maxID bounds the ids of a vocabulary; the largest one seen has 262,144 tokens.
const maxID = 1<<24 - 1

// A tokenizerFile holds the parts of a tokenizer.json that affect counts, as Hugging Face's tokenizers 0.23 writes it. Its
// post-processor adds special tokens around a text, which are not counted. Its truncation and padding are for training.
type tokenizerFile struct {
	AddedTokens  addedTokens `json:"added_tokens"`
	Normalizer   section     `json:"normalizer"`
	PreTokenizer section     `json:"pre_tokenizer"`
	Model        struct {
		Type                    string     `json:"type"`
		Dropout                 float64    `json:"dropout"`
		UnkToken                *string    `json:"unk_token"`
		ContinuingSubwordPrefix string     `json:"continuing_subword_prefix"`
		EndOfWordSuffix         string     `json:"end_of_word_suffix"`
		FuseUnk                 bool       `json:"fuse_unk"`
		ByteFallback            bool       `json:"byte_fallback"`
		IgnoreMerges            bool       `json:"ignore_merges"`
		Vocab                   vocabulary `json:"vocab"`
		Merges                  merges     `json:"merges"`
	} `json:"model"`
}

func (t *Tokenizer) readJSON(data []byte) error {
	var f tokenizerFile
	err := json.Unmarshal(data, &f) // a field of a wrong type is skipped, and the rest is parsed
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return fmt.Errorf("byte %d: %w", syntax.Offset, err)
	}
	if errors.As(err, new(excess)) {
		return err
	}
	m := &f.Model
	if m.Type != "BPE" && (m.Type != "" || m.Merges == nil) {
		return fmt.Errorf(`model.type: want "BPE", got %.60q`, m.Type) // another model's vocabulary may have another form
	}
	if err != nil {
		return located(err, "")
	}
	var errs []error
	want := func(ok bool, field, what string, got any) {
		if !ok {
			errs = append(errs, fmt.Errorf("model.%s: want %s, got %v", field, what, got))
		}
	}
	want(len(m.Vocab) > 0, "vocab", "tokens and their ids", "none")
	want(m.Merges != nil, "merges", "pairs of tokens", "none")
	want(m.Dropout == 0, "dropout", "none", m.Dropout)
	want(m.ContinuingSubwordPrefix == "", "continuing_subword_prefix", "none", fmt.Sprintf("%.60q", m.ContinuingSubwordPrefix))
	want(m.EndOfWordSuffix == "", "end_of_word_suffix", "none", fmt.Sprintf("%.60q", m.EndOfWordSuffix))
	errs = append(errs, t.normalizer(f.Normalizer.component, "normalizer"),
		t.preTokenizer(f.PreTokenizer.component, "pre_tokenizer", true))
	if err := errors.Join(errs...); err != nil {
		return err
	}

	for content, id := range m.Vocab {
		if id < 0 || id > maxID {
			return fmt.Errorf("model.vocab: want ids from 0 to %d, got %d of %.60q", maxID, id, content)
		}
		if len(content) > maxTokenBytes {
			return fmt.Errorf("model.vocab: want tokens of at most %d bytes, got %d: %.60q", maxTokenBytes, len(content), content)
		}
	}
	b := &t.model
	b.unknown, b.fuseUnknown, b.byteFallback, b.ignoreMerges = none, m.FuseUnk, m.ByteFallback, m.IgnoreMerges
	if m.UnkToken != nil {
		id, ok := m.Vocab[*m.UnkToken]
		if !ok {
			return fmt.Errorf("model.unk_token: want a token of the vocabulary, got %.60q", *m.UnkToken)
		}
		b.unknown = id
	}
	if err := b.readMerges(m.Merges, m.Vocab); err != nil {
		return err
	}
	b.readVocab(m.Vocab)
	t.format = "SentencePiece BPE"
	if b.byteLevel {
		t.format = "byte-level BPE"
	}

	return t.readAdded(f.AddedTokens)
}

func (t *Tokenizer) readAdded(all addedTokens) error {
	w := t.walk(0)
	defer w.done()
	for i, a := range all {
		if a.ID < 0 || a.ID > maxID {
			return fmt.Errorf("added_tokens[%d].id: want 0 to %d, got %d", i, maxID, a.ID)
		}
		content := []byte(a.Content)
		if a.Normalized && len(content) <= maxTokenBytes { // this token is searched in the normalized text
			w.begin(len(content))
			content = w.normalize(content, false)
		}
		if len(content) > maxTokenBytes || w.err != nil {
			return fmt.Errorf("added_tokens[%d].content: want at most %d bytes with what normalizers insert, got more: %.60q", i, maxTokenBytes, a.Content)
		}
		token := addedToken{id: a.ID, lstrip: a.Lstrip, rstrip: a.Rstrip, singleWord: a.SingleWord}
		if a.Normalized {
			t.late.add(string(content), token)
		} else {
			t.early.add(string(content), token)
		}
	}
	return nil
}

func (b *bpe) readMerges(all merges, vocab map[string]int32) error {
	b.merges = makePairs(len(all))
	for i, m := range all {
		left, ok := vocab[m[0]]
		right, too := vocab[m[1]]
		becomes, three := int32(0), false
		if ok && too { // else they may be long
			becomes, three = vocab[m[0]+m[1]]
		}
		if !three {
			return fmt.Errorf("model.merges[%d]: want two tokens that make a third one of the vocabulary, got %.60q and %.60q", i, m[0], m[1])
		}
		b.merges.set(left, right, int32(i), becomes)
	}
	return nil
}

// merges lists the pairs of tokens that can merge, lowest rank first.
type merges [][2]string

// UnmarshalJSON parses a list of "a b", the form before version 0.20, or of ["a", "b"].
func (m *merges) UnmarshalJSON(data []byte) error {
	n := elements(data)
	if n > maxMerges {
		return excess(fmt.Sprintf("model.merges: want at most %d, got %d", maxMerges, n))
	}
	if inner := commas(data, 2); inner > maxMerges { // a list may have as many tokens as the file has room for
		return excess(fmt.Sprintf("model.merges: want two tokens each, got %d in %d", inner+n, n))
	}
	var lines []string
	if bytes.HasPrefix(bytes.TrimLeft(data[1:], " \t\r\n"), []byte("[")) {
		var both [][]string
		if err := json.Unmarshal(data, &both); err != nil {
			return located(err, "model.merges")
		}
		*m = make(merges, len(both))
		for i, b := range both {
			if len(b) != 2 {
				return fmt.Errorf("model.merges[%d]: want two tokens, got %d", i, len(b))
			}
			(*m)[i] = [2]string(b)
		}
		return nil
	}
	if err := json.Unmarshal(data, &lines); err != nil {
		return located(err, "model.merges")
	}
	*m = make(merges, len(lines))
	for i, line := range lines {
		left, right, ok := strings.Cut(line, " ")
		if !ok || left == "" || right == "" || strings.Contains(right, " ") {
			return fmt.Errorf("model.merges[%d]: want two tokens with a space between them, got %.60q", i, line)
		}
		(*m)[i] = [2]string{left, right}
	}
	return nil
}

// readVocab indexes the tokens by their bytes. A byte-level vocabulary writes each byte as a printable character. A token
// with other characters is an added token.
func (b *bpe) readVocab(vocab map[string]int32) {
	for i := range b.bytes {
		b.bytes[i] = none
	}
	if !b.byteLevel {
		b.ids = vocab
		for i := range b.bytes {
			if id, ok := vocab[fmt.Sprintf("<0x%02X>", i)]; ok {
				b.bytes[i] = id
			}
		}
		return
	}
	b.ids = make(map[string]int32, len(vocab))
	var word []byte
next:
	for content, id := range vocab {
		word = word[:0]
		for _, r := range content {
			c, ok := byteOf(r)
			if !ok {
				continue next
			}
			word = append(word, c)
		}
		b.ids[string(word)] = id
		if len(word) == 1 {
			b.bytes[word[0]] = id
		}
	}
}

// byteOf returns the byte that a character represents in a byte-level vocabulary. Printable Latin-1 characters represent
// themselves. U+0100 and the following represent the other bytes in order (GPT-2's bytes_to_unicode).
func byteOf(r rune) (byte, bool) {
	printable := func(r rune) bool { return '!' <= r && r <= '~' || '¡' <= r && r <= '¬' || '®' <= r && r <= 'ÿ' }
	switch {
	case r < 0x100:
		return byte(r), printable(r)
	case r <= 0x120: // NUL to space
		return byte(r - 0x100), true
	case r <= 0x142: // DEL to no-break space
		return byte(r - 0x121 + 0x7f), true
	}
	return 0xad, r == 0x143 // the soft hyphen
}

// located adds the field that has a wrong type to the error.
func located(err error, field string) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s: want %s, got %s", cmp.Or(wrong.Field, field), wrong.Type, wrong.Value)
	}
	return err
}
