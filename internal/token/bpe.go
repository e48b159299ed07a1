package token

import (
	"math"
	"slices"
	"unicode/utf8"
)

// A bpe is a byte-pair encoding: a vocabulary, and pairs of tokens that can merge, each with a rank. In a word, the pair of
// the lowest rank is merged first, from left to right, until no pair can merge.
type bpe struct {
	ids    map[string]int32 // by the token's bytes
	merges pairs
	whole  bitset // ids whose bytes encode to only themselves: most words are such a token

	byteLevel    bool
	bytes        [256]int32 // token of each single byte, or -1: the symbols of words, or the fallback for runes
	unknown      int32      // token for runes that are not in the vocabulary, or -1: such runes are left out
	fuseUnknown  bool       // consecutive unknown runes are one token
	byteFallback bool       // an unknown rune is encoded as its bytes if possible
	ignoreMerges bool       // a word that is in the vocabulary is one token, without merges

	neighbors bitset // by neighborhood: pairs of runes that are adjacent in some token; nil if words are not split at borders
}

const none = -1

// seal computes the tables that speed up the encoding. Vocabulary and merges must be complete.
func (b *bpe) seal() {
	if !b.byteLevel && !b.ignoreMerges && b.unknown != none {
		b.neighbors = make(bitset, 1<<22/64)
		for s := range b.ids {
			last := rune(none)
			for _, r := range s {
				if last != none {
					b.neighbors.set(neighborhood(last, r))
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
	for s, id := range b.ids { // b.whole is still empty, so every token is encoded by its merges
		m.ids = b.append(m.ids[:0], []byte(s), m)
		if len(m.ids) == 1 && m.ids[0] == int(id) {
			whole.set(uint32(id))
		}
	}
	b.whole = whole
}

// append appends the ids of a word, or of a part of a word between two borders.
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

// border returns the end of the part of a word that begins at a position. A pre-tokenizer that does not split texts, as for
// SentencePiece's vocabularies, makes one word of a whole text. If two adjacent runes are adjacent in no token, no merge
// crosses the border between them, so the parts on both sides can be encoded separately. Without an unknown token there are
// no borders: a rune that is not in the vocabulary is left out, which makes its neighbors adjacent.
func (b *bpe) border(word []byte, at int) int {
	if b.neighbors == nil {
		return len(word)
	}
	last, size := utf8.DecodeRune(word[at:])
	for at += size; at < len(word); at += size {
		var r rune
		if r, size = utf8.DecodeRune(word[at:]); !b.neighbors.has(neighborhood(last, r)) {
			return at
		}
		last = r
	}
	return len(word)
}

// spell converts the runes of a word, or of a part of a word, to symbols.
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

// spellUnknown appends the unknown token, if there is one, unless it fuses with the last symbol.
func (b *bpe) spellUnknown(m *merger) {
	if b.unknown == none || b.fuseUnknown && m.unknown {
		return
	}
	m.symbols, m.unknown = append(m.symbols, b.unknown), true
}

func (b *bpe) spellsBytes(one []byte) bool {
	return !slices.ContainsFunc(one, func(c byte) bool { return b.bytes[c] == none })
}

// neighborhood returns the index of two adjacent runes. Two pairs may share an index, which only costs time.
func neighborhood(a, b rune) uint32 {
	return uint32((uint64(a)<<21 | uint64(b)) * 0x9e3779b97f4a7c15 >> 42)
}

type bitset []uint64

func (s bitset) set(i uint32) { s[i/64] |= 1 << (i % 64) }

func (s bitset) has(i uint32) bool { return int(i/64) < len(s) && s[i/64]>>(i%64)&1 != 0 }

// pairs maps two adjacent tokens to the rank of their merge and the resulting token. It is a hash table with open
// addressing: it is looked up once for each two bytes of text, more often than anything else here.
type pairs struct {
	slots []pair // length is a power of two; at most half full
}

type pair struct {
	left, right, rank, becomes int32 // rank is -1 in a free slot
}

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

// slot returns the slot of a pair, or the free slot where it belongs.
func (p *pairs) slot(left, right int32) *pair {
	mask := uint64(len(p.slots) - 1)
	for i := (uint64(uint32(left))<<32 | uint64(uint32(right))) * 0x9e3779b97f4a7c15 >> 20; ; i++ {
		if s := &p.slots[i&mask]; s.rank == none || s.left == left && s.right == right {
			return s
		}
	}
}

// set adds a pair. A pair that exists gets the new rank, as in the reference implementation.
func (p *pairs) set(left, right, rank, becomes int32) {
	*p.slot(left, right) = pair{left: left, right: right, rank: rank, becomes: becomes}
}

// rank returns the rank of a pair, or the largest number if the two do not merge.
func (p *pairs) rank(left, right int32) int32 {
	if s := p.slot(left, right); s.rank != none {
		return s.rank
	}
	return math.MaxInt32
}
