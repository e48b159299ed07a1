package token

import (
	"sort"
	"unicode/utf8"
)

// around is how many words on each side of the n-th token are looked at for the end of a cut: a text that ends in the middle of a
// word has other tokens there, and other words in front of it, but not far.
const around = 4

// Cut gives the longest prefix of a text that counts exactly n tokens when it is counted alone, and n. It ends between
// two characters. Where there is no such prefix, as when a character of three tokens has the n-th one in its middle, it gives the
// longest one of those with the most tokens below n, and that number. A text of n tokens or fewer is given whole.
//
// A prefix that ends more than four words after the n-th token of the text is not looked for, nor in a
// word of many kilobytes one that ends more than some characters after it.
func (t *Tokenizer) Cut(text []byte, n int) (prefix []byte, tokens int) {
	if n <= 0 {
		return text[:0], 0
	}
	clean := valid(text)
	end, tokens := t.cut(clean, n)
	if len(clean) == len(text) {
		return text[:end], tokens
	}
	original := 0 // where the text that is not clean has as many characters
	for at := 0; at < end; {
		_, size := utf8.DecodeRune(clean[at:])
		at += size
		_, size = utf8.DecodeRune(text[original:])
		original += size
	}
	return text[:original], tokens
}

func (t *Tokenizer) cut(text []byte, n int) (end, tokens int) {
	w := t.walk()
	defer t.walks.Put(w)
	from, begin, high := w.near(text, n)
	if w.tokens <= n {
		return len(text), w.tokens
	}
	wrong := 0 // by how much what is counted from the mark on is not what the whole counts, which is next to never
	count := func(end int) int {
		w := t.walk()
		defer t.walks.Put(w)
		w.from(text[begin:end], begin == 0, from.at > 0)
		return from.tokens + w.tokens + wrong
	}
	low, high := window(text, begin, high, n, count)
	best, most := begin, 0
	for end = high; end > low; {
		tokens = count(end)
		if tokens == n {
			whole := t.Count(text[:end])
			if whole == n {
				return end, n
			}
			if wrong == 0 { // then all again
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
		if tokens = t.Count(text[:end]); tokens <= n {
			return end, tokens
		}
	}
}

// near takes a text until some words after its n-th token. It gives a mark some words before that token, where the mark is in the
// text, and where the walk ended.
func (w *walk) near(text []byte, n int) (from mark, begin, high int) {
	var before [around]mark // a ring: the last ones with at most n tokens in front
	var stopped mark
	seen, after := 0, 0
	w.mark = func(m mark) bool {
		if m.tokens <= n {
			before[seen%around] = m
			seen++
			return true
		}
		stopped = m
		after++
		return after <= around
	}
	w.whole(text)
	from, high = before[max(seen-around, 0)%around], len(text)
	if after > around {
		high = w.place(text, stopped)
	}
	return from, w.place(text, from), high
}

// window narrows down where to look for an end. It is all that there is, unless words are so long that counting each end would
// take too long: then some characters on both sides of where the count passes n.
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

// runeEnd is the next place, at or after one, that is not inside of a character.
func runeEnd(text []byte, at int) int {
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return at
}

// runeBefore is where the character in front of a place begins.
func runeBefore(text []byte, at int) int {
	_, size := utf8.DecodeLastRune(text[:at])
	return at - size
}

// place finds a mark in the text: the longest part of the text that, normalized, is no longer than what stands in front of the mark.
func (w *walk) place(text []byte, m mark) int {
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

// length is that of a text between two added tokens, with all that is put into it.
func (w *walk) length(text []byte, first bool) int {
	normal, n := normalize(w.t.steps, text, &w.spare, false), 0
	w.t.late.each(normal, func(begin, end, id int) bool {
		if id != none {
			n += end - begin
		} else {
			n += len(w.lead(normal[begin:end], first && begin == 0, false))
		}
		return true
	})
	return n
}
