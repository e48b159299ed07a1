package token

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// added are the tokens that a tokenizer's file adds to the vocabulary, as <|im_end|>. They are found in a text before it is taken
// apart, the longest at the first place that has one.
type added struct {
	tokens  map[string]addedToken
	lengths [256][]int // by first byte: the lengths of the tokens that begin with it, the longest first
}

type addedToken struct {
	id             int
	lstrip, rstrip bool // it takes the white space around it too
	singleWord     bool // it does not touch a letter or a digit
}

func (a *added) add(content string, t addedToken) {
	if content == "" {
		return
	}
	if a.tokens == nil {
		a.tokens = map[string]addedToken{}
	}
	a.tokens[content] = t
	if l := &a.lengths[content[0]]; !slices.Contains(*l, len(content)) {
		*l = append(*l, len(content))
		slices.SortFunc(*l, func(a, b int) int { return b - a })
	}
}

// each calls yield with the parts of a text, which are added tokens or stand between them (id -1), until that says false.
func (a *added) each(text []byte, yield func(begin, end, id int) bool) bool {
	done := 0
	for at := 0; at < len(text) && len(a.tokens) > 0; {
		t, size := a.longest(text[at:])
		if size == 0 {
			at++
			continue
		}
		begin, end := at, at+size
		at = end
		if t.singleWord && (wordEnds(text[:begin]) || wordBegins(text[end:])) {
			continue
		}
		if t.lstrip {
			for begin > done {
				r, size := utf8.DecodeLastRune(text[done:begin])
				if !unicode.IsSpace(r) {
					break
				}
				begin -= size
			}
		}
		if t.rstrip {
			for end < len(text) {
				r, size := utf8.DecodeRune(text[end:])
				if !unicode.IsSpace(r) {
					break
				}
				end += size
			}
		}
		at = max(at, end)
		if begin > done && !yield(done, begin, none) || !yield(begin, end, t.id) {
			return false
		}
		done = end
	}
	return done == len(text) || yield(done, len(text), none)
}

// longest is the longest token that a text begins with, and its length; 0 for none.
func (a *added) longest(text []byte) (addedToken, int) {
	for _, n := range a.lengths[text[0]] {
		if n <= len(text) {
			if t, ok := a.tokens[string(text[:n])]; ok {
				return t, n
			}
		}
	}
	return addedToken{}, 0
}

func wordBegins(text []byte) bool {
	r, _ := utf8.DecodeRune(text)
	return len(text) > 0 && wordRune(r)
}

func wordEnds(text []byte) bool {
	r, _ := utf8.DecodeLastRune(text)
	return len(text) > 0 && wordRune(r)
}

// wordRune reports whether \w matches a rune, as Unicode's technical standard 18 has it.
func wordRune(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control)
}
