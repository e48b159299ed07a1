package token

import (
	"fmt"
	"slices"
	"sort"
	"unicode"
	"unicode/utf8"
)

// classes holds the character classes of a pattern, one bit each.
type classes struct {
	sets  [][]rune         // sorted pairs: from, to
	basic *[1 << 16]uint32 // classes of each rune of the basic multilingual plane
}

// add returns the bit of a class. Equal classes share a bit.
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

func (c *classes) has(class int, r rune) bool {
	if r < 1<<16 {
		return c.basic[r]>>class&1 != 0
	}
	set := c.sets[class]
	i := sort.Search(len(set)/2, func(i int) bool { return set[2*i+1] >= r })
	return i < len(set)/2 && set[2*i] <= r
}

// literal returns the class of one rune, or of all runes that differ from it only by case.
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

// find returns the first match at or after a position. If there is none, end ≤ start. The search is how many bytes may be compared:
// a pattern that gives back what it took can take a text times a text. Below 0, there is no match.
func (p *pattern) find(text []byte, from int, search *int) (start, end int) {
	for start = from; start < len(text) && *search >= 0; {
		if end = p.match(p.first, text, start, search); end > start {
			return start, end
		}
		_, size := utf8.DecodeRune(text[start:])
		start += size
	}
	return len(text), len(text)
}

// match returns the end of the match of node n and its successors at a position, or -1. The recursion is as deep as the
// pattern.
func (p *pattern) match(n *node, text []byte, at int, search *int) int {
	for n != nil {
		if *search--; *search < 0 {
			return -1
		}
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
			*search -= at - begin
			if runes < n.min {
				return -1
			}
			// Greedy: give back one rune at a time until the rest matches.
			for ; runes > n.min && n.next != nil; runes-- {
				if end := p.match(n.next, text, at, search); end >= 0 {
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
				if end := p.match(branch, text, at, search); end >= 0 {
					return end
				}
			}
			return -1
		}
		n = n.next
	}
	return at
}
