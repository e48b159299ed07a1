package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Kinds of token, as llama.cpp numbers them.
const (
	normal    int32 = 1
	unknown   int32 = 2
	control   int32 = 3
	byteToken int32 = 6
)

// space stands for " " in SentencePiece's vocabularies.
const space = "\u2581"

// A vocabulary is the vocabulary of SentencePiece's BPE: of two adjacent tokens whose joined text is a token, those
// with the highest score are joined first.
type vocabulary struct {
	tokens []string
	scores []float32
	kinds  []int32
	words  int // index of the first word or beginning of a word
}

// newVocabulary takes words of a to z. It adds all beginnings of each word, because tokens are joined letter by letter.
// Every token with a letter starts with the space, so only the beginning of a word can be joined, and any word of the
// list becomes one token.
func newVocabulary(words []string) (vocabulary, error) {
	if len(words) == 0 {
		return vocabulary{}, errors.New("want at least one word")
	}
	v := vocabulary{}
	add := func(token string, kind int32, score float32) {
		v.tokens, v.kinds, v.scores = append(v.tokens, token), append(v.kinds, kind), append(v.scores, score)
	}
	add("<unk>", unknown, 0)
	add("<s>", control, 0)
	add("</s>", control, 0)
	for b := range 256 {
		add(fmt.Sprintf("<0x%02X>", b), byteToken, 0)
	}
	add(space, normal, 0)
	for c := '!'; c <= '~'; c++ {
		add(string(c), normal, 0)
	}
	v.words = len(v.tokens)

	beginnings := map[string]bool{}
	for i, w := range words {
		for n := range len(w) {
			if w[n] < 'a' || w[n] > 'z' {
				return vocabulary{}, fmt.Errorf("word %d: want letters a to z, got %q", i+1, w)
			}
			beginnings[w[:n+1]] = true
		}
	}
	sorted := slices.SortedFunc(maps.Keys(beginnings), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	for i, b := range sorted {
		add(space+b, normal, -float32(i+1))
	}
	return v, nil
}
