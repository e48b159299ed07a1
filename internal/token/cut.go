package token

import (
	"sort"
	"unicode/utf8"
)

// wordsAround is the number of words on each side of the n-th token in which Cut looks for the end. A text that
// ends within a word has other tokens there, and sometimes other words before it, but only nearby.
const wordsAround = 4

// Cut returns the longest prefix of a text that has exactly n tokens when it is counted alone, and n. The prefix ends
// between two characters. Some texts have no such prefix: the n-th token may be in the middle of a character of three
// tokens. Then Cut returns the longest of the prefixes with the most tokens below n, and their number of tokens. A text of
// at most n tokens is returned whole.
//
// Cut does not look for a prefix that ends more than four words after the n-th token. In a word of many kilobytes, it does
// not look further than some characters after the n-th token. It has the errors of Count.
func (t *Tokenizer) Cut(text []byte, n int) (prefix []byte, tokens int, err error) {
	if n <= 0 {
		return text[:0], 0, nil
	}
	clean := valid(text)
	w := t.walk(len(clean))
	defer w.done()
	end, tokens := w.cut(clean, n)
	if w.err != nil {
		return text[:0], 0, w.err
	}
	if len(clean) == len(text) {
		return text[:end], tokens, nil
	}
	original := 0 // end of the same number of characters in text, which has invalid UTF-8
	for at := 0; at < end; {
		_, size := utf8.DecodeRune(clean[at:])
		at += size
		_, size = utf8.DecodeRune(text[original:])
		original += size
	}
	return text[:original], tokens, nil
}

func (w *walk) cut(text []byte, n int) (end, tokens int) {
	from, begin, high, tokens := w.near(text, n)
	if tokens <= n || w.err != nil {
		return len(text), tokens
	}
	wrong := 0 // whole count − count from the mark; almost always 0
	count := func(end int) int {
		w.from(text[begin:end], begin == 0, from.at > 0)
		return from.tokens + w.tokens + wrong
	}
	low, high := window(text, begin, high, n, count)
	best, most := begin, 0
	for end = high; end > low; {
		tokens = count(end)
		if tokens == n {
			w.whole(text[:end])
			whole := w.tokens
			if whole == n || w.err != nil {
				return end, n
			}
			if wrong == 0 { // correct by the difference, and try all ends again
				wrong, best, most, end = whole-n, begin, 0, high
				continue
			}
		}
		if tokens < n && tokens > most {
			best, most = end, tokens
		}
		end = runeBefore(text, end)
	}
	for end = best; ; end = runeBefore(text, end) {
		if w.whole(text[:end]); w.tokens <= n || w.err != nil {
			return end, w.tokens
		}
	}
}

// near walks through a text until some words after its n-th token. It returns a mark some words before that token, the
// mark's position in the text, the position at which the walk ended, and the number of tokens until there.
func (w *walk) near(text []byte, n int) (from mark, begin, high, tokens int) {
	var before [wordsAround]mark // ring buffer of the last marks with at most n tokens before them
	var stopped mark
	seen, after := 0, 0
	w.mark = func(m mark) bool {
		if m.tokens <= n {
			before[seen%wordsAround] = m
			seen++
			return true
		}
		stopped = m
		after++
		return after <= wordsAround
	}
	w.whole(text)
	w.mark = nil
	from, high, tokens = before[max(seen-wordsAround, 0)%wordsAround], len(text), w.tokens
	if after > wordsAround {
		high = w.position(text, stopped)
	}
	return from, w.position(text, from), high, tokens
}

// window narrows the range of possible ends. Usually it returns the whole range. If words are so long that to count every
// end would take too long, it returns some characters on both sides of the end at which the count exceeds n.
func window(text []byte, low, high, n int, count func(int) int) (int, int) {
	const all, work = 512, 1 << 19 // bytes
	if high-low <= all {
		return low, high
	}
	characters := min(max(work/(high-low), 4), 64)
	pass := low + sort.Search(high-low, func(i int) bool { return count(runeEnd(text, low+i)) > n })
	pass = runeEnd(text, pass)
	from, to := pass, pass
	for range characters {
		from, to = max(runeBefore(text, from), low), min(runeEnd(text, to+1), high)
	}
	return from, to
}

// runeEnd returns the first position ≥ at that is not within a character.
func runeEnd(text []byte, at int) int {
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return at
}

// runeBefore returns the beginning of the character before a position.
func runeBefore(text []byte, at int) int {
	_, size := utf8.DecodeLastRune(text[:at])
	return at - size
}

// position returns the position of a mark in the text: the end of the longest prefix whose normalized form is at
// most as long as the mark's.
func (w *walk) position(text []byte, m mark) int {
	if m.same {
		return m.begin + m.at
	}
	part := text[m.begin:m.end]
	i := sort.Search(len(part)+1, func(i int) bool {
		return i > len(part) || w.length(part[:runeEnd(part, i)], m.begin == 0) > m.at
	})
	if i > len(part) {
		return m.end
	}
	return m.begin + runeBefore(part, runeEnd(part, i))
}

// length returns the length of the normalized text between two added tokens, including all that normalization inserts.
func (w *walk) length(text []byte, first bool) int {
	w.begin(len(text))
	normal, n := w.normalize(text, false), 0
	w.t.late.each(normal, &w.search, func(begin, end, id int) bool {
		if id != none {
			n += end - begin
		} else {
			n += len(w.lead(normal[begin:end], first && begin == 0, false))
		}
		return true
	})
	return n
}
