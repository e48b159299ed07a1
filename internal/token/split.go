package token

import "slices"

// A split is a step of a pre-tokenizer. It splits texts at the matches of a pattern.
type split struct {
	pattern  *pattern
	invert   bool // the pattern matches the text between the splits
	behavior behavior
}

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
func (s *split) next(text []byte, at int, search *int) (spans [2]span, n int) {
	start, end := s.pattern.find(text, at, search)
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
func (s *split) each(text []byte, search *int, yield func(begin, end int) bool) {
	var piece span // the current piece, which may grow
	for at := 0; at < len(text); {
		spans, n := s.next(text, at, search)
		for _, p := range spans[:n] {
			at = p.end
			if s.behavior == removed && p.match {
				continue
			}
			touch := piece.end == p.begin && piece.end > piece.begin
			joined := touch && (s.behavior == contiguous && p.match == piece.match ||
				s.behavior == mergedWithPrevious && p.match && !piece.match ||
				s.behavior == mergedWithNext && !p.match && piece.match)
			switch {
			case joined && s.behavior == contiguous:
				piece.end = p.end
				continue
			case joined: // the piece is complete: the next match does not join it
				p = span{piece.begin, p.end, s.behavior == mergedWithPrevious}
			case piece.end > piece.begin:
				if !yield(piece.begin, piece.end) {
					return
				}
			}
			piece = p
		}
	}
	if piece.end > piece.begin {
		yield(piece.begin, piece.end)
	}
}

// pieces calls yield with each piece of a text after all steps.
func pieces(steps []split, text []byte, offset int, search *int, yield func(begin, end int) bool) bool {
	if len(steps) == 0 {
		return len(text) == 0 || yield(offset, offset+len(text))
	}
	more := true
	steps[0].each(text, search, func(begin, end int) bool {
		more = pieces(steps[1:], text[begin:end], offset+begin, search, yield)
		return more
	})
	return more
}

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
