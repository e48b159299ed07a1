package token

import "slices"

// A split is a step of a pre-tokenizer. It splits texts at the matches of a pattern.
type split struct {
	pattern  *pattern
	invert   bool // the pattern matches the text between the splits
	behavior behavior
}

// A behavior says where a match goes.
type behavior int

const (
	isolated behavior = iota // a piece of its own
	removed
	contiguous         // one piece with the adjacent matches
	mergedWithPrevious // the end of the piece before it, which is no match
	mergedWithNext     // the beginning of the piece after it, which is no match
)

var behaviors = map[string]behavior{
	"Isolated": isolated, "Removed": removed, "Contiguous": contiguous,
	"MergedWithPrevious": mergedWithPrevious, "MergedWithNext": mergedWithNext,
}

// A span is a part of a text. It is a match or not.
type span struct {
	begin, end int
	match      bool
}

// next returns the span that begins at a position: a match, or the text before the next match.
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

// each calls yield with each piece of a text until yield returns false.
func (s *split) each(text []byte, yield func(begin, end int) bool) {
	if s.behavior == isolated { // the most frequent behavior; it does not depend on neighbors
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
	var held span // the current piece, which may grow
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
			case joined: // the piece is complete: the next match does not join it
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

// pieces calls yield with each piece of a text after all steps.
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

// literalSplit returns a split at a literal text.
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
