package token

import (
	"bytes"
	"slices"
	"unicode"
	"unicode/utf8"
)

// added holds the tokens that a tokenizer's file adds to the vocabulary, such as <|im_end|>. They are found in a text
// before it is split. At each position, the longest token wins.
type added struct {
	tokens  map[string]addedToken
	lengths [256][]int // by first byte: the lengths of the tokens that begin with it, longest first
}

type addedToken struct {
	id             int
	lstrip, rstrip bool // include the adjacent white space
	singleWord     bool // only if no letter or digit is adjacent
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

// each calls yield with the parts of a text in order until yield returns false. A part is an added token, or the text
// between two of them (id -1).
//
// The search is how many bytes may be compared with tokens. Below 0, no further token is found.
func (a *added) each(text []byte, search *int, yield func(begin, end, id int) bool) bool {
	done := 0
	for at := 0; at < len(text) && len(a.tokens) > 0 && *search >= 0; {
		t, size := a.longest(text[at:], search)
		if size == 0 {
			at++
			continue
		}
		begin, end := at, at+size
		at = end
		before, _ := utf8.DecodeLastRune(text[:begin])
		after, _ := utf8.DecodeRune(text[end:])
		if t.singleWord && (wordRune(before) || wordRune(after)) {
			continue
		}
		if t.lstrip {
			begin = done + len(bytes.TrimRightFunc(text[done:begin], unicode.IsSpace))
		}
		if t.rstrip {
			end = len(text) - len(bytes.TrimLeftFunc(text[end:], unicode.IsSpace))
		}
		at = max(at, end)
		if begin > done && !yield(done, begin, none) || !yield(begin, end, t.id) {
			return false
		}
		done = end
	}
	return done == len(text) || yield(done, len(text), none)
}

// longest returns the longest token at the beginning of a text, and its length; 0 if there is none.
func (a *added) longest(text []byte, search *int) (addedToken, int) {
	for _, n := range a.lengths[text[0]] {
		if n <= len(text) {
			*search -= 1 + n/16 // a hash takes no longer
			if t, ok := a.tokens[string(text[:n])]; ok {
				return t, n
			}
		}
	}
	return addedToken{}, 0
}

// wordRune reports whether \w matches a rune, as defined in Unicode Technical Standard 18. It does not match U+FFFD,
// which stands for none at the end of a text.
func wordRune(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control)
}
