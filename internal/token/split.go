package token

import "slices"

// A split is one step of a pre-tokenizer: it takes texts apart at what a pattern matches.
type split struct {
	pattern  *pattern
	invert   bool // the pattern matches what stands between
	behavior behavior
}

// A behavior says what becomes of a match.
type behavior int

const (
	isolated behavior = iota // a piece of its own
	removed
	contiguous         // one piece with the matches that it touches
	mergedWithPrevious // the end of the piece in front, which is no match
	mergedWithNext     // the beginning of the piece behind, which is no match
)

var behaviors = map[string]behavior{
	"Isolated": isolated, "Removed": removed, "Contiguous": contiguous,
	"MergedWithPrevious": mergedWithPrevious, "MergedWithNext": mergedWithNext,
}

// A span is a part of a text, and whether it is a match.
type span struct {
	begin, end int
	match      bool
}

// next gives the span that begins at a place: a match, or what stands in front of the next one.
func (s *split) next(text []byte, at int) (spans [2]span, n int) {
	start, end := s.pattern.find(text, at)
	if start > at {
		spans[n] = span{at, start, s.invert}
		n++
	}
	if end > start {
		spans[n] = span{start, end, !s.invert}
		n++
	}
	return spans, n
}

// each calls yield with each piece of a text, until that says false.
func (s *split) each(text []byte, yield func(begin, end int) bool) {
	if s.behavior == isolated { // by far the most frequent, and it needs no look at the neighbours
		for at := 0; at < len(text); {
			spans, n := s.next(text, at)
			for _, p := range spans[:n] {
				if !yield(p.begin, p.end) {
					return
				}
				at = p.end
			}
		}
		return
	}
	var held span // it may grow
	for at := 0; at < len(text); {
		spans, n := s.next(text, at)
		for _, p := range spans[:n] {
			at = p.end
			if s.behavior == removed && p.match {
				continue
			}
			touch := held.end == p.begin && held.end > held.begin
			joined := touch && (s.behavior == contiguous && p.match == held.match ||
				s.behavior == mergedWithPrevious && p.match && !held.match ||
				s.behavior == mergedWithNext && !p.match && held.match)
			switch {
			case joined && s.behavior == contiguous:
				held.end = p.end
				continue
			case joined: // and closed: the next match does not join what one has joined
				p = span{held.begin, p.end, s.behavior == mergedWithPrevious}
			case held.end > held.begin:
				if !yield(held.begin, held.end) {
					return
				}
			}
			held = p
		}
	}
	if held.end > held.begin {
		yield(held.begin, held.end)
	}
}

// pieces calls yield with each piece that the steps leave of a text.
func pieces(steps []split, text []byte, offset int, yield func(begin, end int) bool) bool {
	if len(steps) == 0 {
		return len(text) == 0 || yield(offset, offset+len(text))
	}
	more := true
	steps[0].each(text, func(begin, end int) bool {
		more = pieces(steps[1:], text[begin:end], offset+begin, yield)
		return more
	})
	return more
}

// literalSplit splits at a text that stands for itself.
func literalSplit(text string, b behavior) (split, error) {
	p := &pattern{}
	for _, r := range slices.Backward([]rune(text)) {
		class, err := p.classes.add(literal(r, false))
		if err != nil {
			return split{}, err
		}
		p.first = &node{class: class, min: 1, max: 1, next: p.first}
	}
	return split{pattern: p, behavior: b}, nil
}
