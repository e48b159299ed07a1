package token

import (
	"fmt"
	"slices"
	"sort"
	"unicode"
	"unicode/utf8"
)

// classes are the character classes of a pattern, one bit each.
type classes struct {
	sets  [][]rune         // sorted pairs: from, to
	basic *[1 << 16]uint32 // by code point: the classes of the runes that most text is made of
}

// add gives the number of a class, a new one or an old one that is the same.
func (c *classes) add(runes []rune) (int, error) {
	for i, old := range c.sets {
		if slices.Equal(old, runes) {
			return i, nil
		}
	}
	if len(c.sets) == 32 {
		return 0, fmt.Errorf("more than 32 different characters and classes")
	}
	if c.basic == nil {
		c.basic = new([1 << 16]uint32)
	}
	c.sets = append(c.sets, runes)
	for i := 0; i < len(runes); i += 2 {
		for r := runes[i]; r <= min(runes[i+1], 1<<16-1); r++ {
			c.basic[r] |= 1 << (len(c.sets) - 1)
		}
	}
	return len(c.sets) - 1, nil
}

// has reports whether a class has a rune.
func (c *classes) has(class int, r rune) bool {
	if r < 1<<16 {
		return c.basic[r]>>class&1 != 0
	}
	set := c.sets[class]
	i := sort.Search(len(set)/2, func(i int) bool { return set[2*i+1] >= r })
	return i < len(set)/2 && set[2*i] <= r
}

// literal is the class of one rune, or of all that differ from it by case.
func literal(r rune, fold bool) []rune {
	set := []rune{r}
	if fold {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			set = append(set, f)
		}
	}
	slices.Sort(set)
	pairs := make([]rune, 0, 2*len(set))
	for _, r := range set {
		pairs = append(pairs, r, r)
	}
	return pairs
}

// find gives the first match at or after a place, with end ≤ start when there is none.
func (p *pattern) find(text []byte, from int) (start, end int) {
	for start = from; start < len(text); {
		if end = p.match(p.first, text, start); end > start {
			return start, end
		}
		_, size := utf8.DecodeRune(text[start:])
		start += size
	}
	return len(text), len(text)
}

// match gives the end of what the pattern matches from n on at a place, or -1. Its depth is that of the pattern.
func (p *pattern) match(n *node, text []byte, at int) int {
	for n != nil {
		switch {
		case n.class >= 0:
			begin, runes := at, 0
			for runes != n.max && at < len(text) {
				r, size := rune(text[at]), 1
				if r >= utf8.RuneSelf {
					r, size = utf8.DecodeRune(text[at:])
				}
				if !p.classes.has(n.class, r) {
					break
				}
				at += size
				runes++
			}
			if runes < n.min {
				return -1
			}
			// Greedy: what follows gets a rune back as long as it does not match.
			for ; runes > n.min && n.next != nil; runes-- {
				if end := p.match(n.next, text, at); end >= 0 {
					return end
				}
				_, size := utf8.DecodeLastRune(text[begin:at])
				at -= size
			}
		case n.atSpace:
			if r, _ := utf8.DecodeRune(text[at:]); at < len(text) && !unicode.IsSpace(r) {
				return -1
			}
		default:
			for _, branch := range n.branches {
				if end := p.match(branch, text, at); end >= 0 {
					return end
				}
			}
			return -1
		}
		n = n.next
	}
	return at
}
