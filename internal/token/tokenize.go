package token

import (
	"bytes"
	"cmp"
)

// A walk is the state of one text in a tokenizer: the text is split at added tokens, normalized and split into words, and
// each word is encoded. Only one goroutine may use it at a time.
type walk struct {
	t      *Tokenizer
	merger merger
	spare  [2][]byte // buffers for normalized texts
	led    []byte    // buffer for a text with its lead

	large  bool // the walk holds t.large
	room   int  // bytes that the text may still become longer
	search int  // bytes that may still be compared with patterns and added tokens
	err    error
	tokens int
	keep   bool            // keep the ids, in merger.ids
	mark   func(mark) bool // if set, it is called before each word or part of a word; false ends the walk
}

// A mark is a position between two words.
type mark struct {
	tokens int // number of tokens before the mark
	begin  int // begin and end of the text between two added tokens that contains the mark
	end    int
	at     int  // number of bytes before the mark in the normalized form of that text
	same   bool // the normalized form is the text itself
}

// walk returns a walk for texts of at most this many bytes. The caller ends it with done.
func (t *Tokenizer) walk(bytes int) *walk {
	if bytes > largest/t.growth {
		t.large.Lock()
		return &walk{t: t, large: true}
	}
	w, ok := t.walks.Get().(*walk)
	if !ok {
		w = &walk{t: t}
	}
	w.err, w.keep = nil, false
	return w
}

// done gives the buffers back, unless they may be large.
func (w *walk) done() {
	if w.large {
		w.t.large.Unlock()
		return
	}
	w.t.walks.Put(w)
}

// begin begins to walk through a text of this many bytes.
func (w *walk) begin(bytes int) {
	w.room, w.search = maxText, maxSearch*(bytes+1024)
	w.tokens, w.merger.ids = 0, w.merger.ids[:0]
}

// fail ends the walk with an error. The first one stays.
func (w *walk) fail(err error) bool {
	w.err = cmp.Or(w.err, err)
	return false
}

func (w *walk) whole(text []byte) { w.from(text, true, false) }

// from walks through a text. first: the text is not preceded by another one. continued: the text is the rest of a section.
func (w *walk) from(text []byte, first, continued bool) {
	w.begin(len(text))
	w.t.early.each(text, &w.search, func(begin, end, id int) bool {
		if id != none {
			return w.token(mark{begin: begin, end: end, same: true}, id)
		}
		return w.section(text[begin:end], mark{begin: begin, end: end}, first && begin == 0, continued && begin == 0)
	})
	w.searches()
}

// searches reports whether the search for patterns and added tokens may go on. If not, the walk has failed, because matches are missing.
func (w *walk) searches() bool {
	if w.search < 0 {
		return w.fail(errSlowText)
	}
	return w.err == nil
}

func (w *walk) token(at mark, id int) bool {
	at.tokens = w.tokens
	if w.mark != nil && !w.mark(at) {
		return false
	}
	w.tokens++
	if w.keep {
		w.merger.ids = append(w.merger.ids, id)
	}
	return true
}

func (w *walk) section(text []byte, m mark, first, continued bool) bool {
	normal := w.normalize(text, continued)
	if w.err != nil {
		return false
	}
	w.room -= len(normal)
	done := 0 // number of bytes of the text, including inserted ones
	return w.t.late.each(normal, &w.search, func(begin, end, id int) bool {
		m.at, m.same = done, len(normal) == len(text) && done == begin && &normal[0] == &text[0]
		if id != none {
			done += end - begin
			return w.token(m, id)
		}
		part := w.lead(normal[begin:end], first && begin == 0, continued && begin == 0)
		if w.err != nil {
			return false
		}
		w.room -= len(part) - (end - begin)
		m.same = m.same && &part[0] == &normal[begin]
		done += len(part)
		at := m.at
		return pieces(w.t.splits, part, 0, &w.search, func(begin, end int) bool {
			m.at = at + begin
			return w.word(part[begin:end], m)
		})
	})
}

// lead changes a text as the pre-tokenizer does before it splits the text.
func (w *walk) lead(text []byte, first, continued bool) []byte {
	l := &w.t.lead
	spaced := l.spaces != "" && bytes.IndexByte(text, ' ') >= 0
	put := l.text != "" && !continued && (first || !l.firstOnly)
	if !spaced && !put {
		return text
	}
	out := w.led[:0]
	begun := bytes.HasPrefix(text, []byte(l.text)) || l.spaces == l.text && text[0] == ' '
	if put && !begun {
		out = append(out, l.text...)
	}
	if !spaced {
		out = append(out, text...)
	} else {
		for _, c := range text {
			if !w.holds(len(out) - len(text)) { // inserted bytes take room
				break
			}
			if c == ' ' {
				out = append(out, l.spaces...)
			} else {
				out = append(out, c)
			}
		}
	}
	w.led = out
	return out
}

// word encodes a word, part by part.
func (w *walk) word(word []byte, m mark) bool {
	w.merger.unknown = false
	begin := m.at
	for at := 0; at < len(word) && w.searches(); {
		// An unknown rune may fuse with previous unknown runes, so this is no position to restart from.
		if m.tokens, m.at = w.tokens, begin+at; w.mark != nil && !w.merger.unknown && !w.mark(m) {
			return false
		}
		end := w.t.model.border(word, at)
		if end-at > maxWord {
			return w.fail(errLongWord)
		}
		before := len(w.merger.ids)
		w.merger.ids = w.t.model.append(w.merger.ids, word[at:end], &w.merger)
		w.tokens += len(w.merger.ids) - before
		if !w.keep {
			w.merger.ids = w.merger.ids[:before]
		}
		at = end
	}
	return w.err == nil
}
