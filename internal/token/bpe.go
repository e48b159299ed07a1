package token

import (
	"math"
	"unicode/utf8"
)

// A bpe is a byte-pair encoding: a vocabulary, and the pairs of tokens that may become one, each with its rank. In a word the
// pair of the lowest rank is merged, of several such the leftmost, until no pair is left that may.
type bpe struct {
	ids    map[string]int32 // by the token's bytes
	merges pairs
	whole  bitset // the ids whose own bytes encode to just them: most words of a text are such

	byteLevel    bool
	bytes        [256]int32 // the token of a byte by itself, or -1: the symbols that words are made of, or the fallback for runes
	unknown      int32      // for runes that are not in the vocabulary, or -1: they are then left out
	fuseUnknown  bool       // unknown runes in a row are one token
	byteFallback bool       // such runes are first tried as their bytes
	ignoreMerges bool       // a word that is in the vocabulary is taken as it is

	neighbours bitset // by neighbourhood: pairs of runes that stand side by side in a token; nil where words are not cut by them
}

const none = -1

// seal works out what makes the encoding quick, when vocabulary and merges are complete.
func (b *bpe) seal() {
	if !b.byteLevel && !b.ignoreMerges && b.unknown != none {
		b.neighbours = make(bitset, 1<<22/64)
		for s := range b.ids {
			last := rune(none)
			for _, r := range s {
				if last != none {
					b.neighbours.set(neighbourhood(last, r))
				}
				last = r
			}
		}
	}
	if b.ignoreMerges {
		return
	}
	var highest int32
	for _, id := range b.ids {
		highest = max(highest, id)
	}
	whole, m := make(bitset, highest/64+1), &merger{}
	for s, id := range b.ids { // b.whole is empty yet, so that each is encoded by its merges
		m.ids = b.append(m.ids[:0], []byte(s), m)
		if len(m.ids) == 1 && m.ids[0] == int(id) {
			whole.set(uint32(id))
		}
	}
	b.whole = whole
}

// append appends the ids of a word, or of a part of one that stands between two borders.
func (b *bpe) append(dst []int, word []byte, m *merger) []int {
	if id, ok := b.ids[string(word)]; ok && (b.ignoreMerges || b.whole.has(uint32(id))) {
		m.unknown = false
		return append(dst, int(id))
	}
	if !b.byteLevel {
		b.spell(word, m)
		return b.merge(dst, m)
	}
	m.symbols = m.symbols[:0]
	for _, c := range word {
		if id := b.bytes[c]; id != none {
			m.symbols, m.unknown = append(m.symbols, id), false
		} else {
			b.spellUnknown(m)
		}
	}
	return b.merge(dst, m)
}

// border gives the end of the part of a word that begins at a place. Where the pre-tokenizer leaves texts whole, as for
// SentencePiece's vocabularies, a word is a whole text. Between two runes that stand side by side in no token there is a border
// that no merge reaches across, so that the parts can be encoded by themselves. Without an unknown token there is none: what is not
// in the vocabulary is left out, and its neighbours then stand side by side.
func (b *bpe) border(word []byte, at int) int {
	if b.neighbours == nil {
		return len(word)
	}
	last, size := utf8.DecodeRune(word[at:])
	for at += size; at < len(word); at += size {
		var r rune
		if r, size = utf8.DecodeRune(word[at:]); !b.neighbours.has(neighbourhood(last, r)) {
			return at
		}
		last = r
	}
	return len(word)
}

// spell makes the symbols of a word or a part of one out of its runes.
func (b *bpe) spell(word []byte, m *merger) {
	m.symbols = m.symbols[:0]
	for at := 0; at < len(word); {
		_, size := utf8.DecodeRune(word[at:])
		one := word[at : at+size]
		at += size
		id, ok := b.ids[string(one)]
		switch {
		case ok:
			m.symbols, m.unknown = append(m.symbols, id), false
		case b.byteFallback && b.spellsBytes(one):
			for _, c := range one {
				m.symbols = append(m.symbols, b.bytes[c])
			}
			m.unknown = false
		default:
			b.spellUnknown(m)
		}
	}
}

// spellUnknown puts the unknown token, if there is one, where it is not one with the last symbol.
func (b *bpe) spellUnknown(m *merger) {
	if b.unknown == none || b.fuseUnknown && m.unknown {
		return
	}
	m.symbols, m.unknown = append(m.symbols, b.unknown), true
}

func (b *bpe) spellsBytes(one []byte) bool {
	for _, c := range one {
		if b.bytes[c] == none {
			return false
		}
	}
	return true
}

// neighbourhood is the place of two runes that stand side by side. Two pairs may share one, which costs time and nothing else.
func neighbourhood(a, b rune) uint32 {
	return uint32((uint64(a)<<21 | uint64(b)) * 0x9e3779b97f4a7c15 >> 42)
}

// A bitset is a set of small numbers.
type bitset []uint64

func (s bitset) set(i uint32) { s[i/64] |= 1 << (i % 64) }

func (s bitset) has(i uint32) bool { return int(i/64) < len(s) && s[i/64]>>(i%64)&1 != 0 }

// pairs maps two neighbouring tokens to the rank of their merge and the token that they become. It is a hash table with open
// addressing: one look-up for each two bytes of text makes it the busiest thing here.
type pairs struct {
	slots []pair // a power of two, at most half full
}

type pair struct {
	left, right, rank, becomes int32 // rank is -1 in a free slot
}

// makePairs makes room for so many.
func makePairs(n int) pairs {
	size := 8
	for size < 2*n {
		size *= 2
	}
	p := pairs{slots: make([]pair, size)}
	for i := range p.slots {
		p.slots[i].rank = none
	}
	return p
}

// slot is the place of a pair, or the free one where it belongs.
func (p *pairs) slot(left, right int32) *pair {
	mask := uint64(len(p.slots) - 1)
	for i := (uint64(uint32(left))<<32 | uint64(uint32(right))) * 0x9e3779b97f4a7c15 >> 20; ; i++ {
		if s := &p.slots[i&mask]; s.rank == none || s.left == left && s.right == right {
			return s
		}
	}
}

// set adds a pair; one that is there already gets the new rank, as in the reference.
func (p *pairs) set(left, right, rank, becomes int32) {
	*p.slot(left, right) = pair{left: left, right: right, rank: rank, becomes: becomes}
}

// rank is that of a pair, or the highest number for two that are not merged.
func (p *pairs) rank(left, right int32) int32 {
	if s := p.slot(left, right); s.rank != none {
		return s.rank
	}
	return math.MaxInt32
}
