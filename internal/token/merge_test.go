package token

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// slowly follows the definition literally: it merges the pair with the lowest rank first, and the leftmost of
// several.
func (b *bpe) slowly(ids []int32) (merged []int) {
	for {
		best := -1
		for i := range len(ids) - 1 {
			s := b.merges.slot(ids[i], ids[i+1])
			if s.rank != none && (best < 0 || s.rank < b.merges.rank(ids[best], ids[best+1])) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		ids[best] = b.merges.slot(ids[best], ids[best+1]).becomes
		ids = slices.Delete(ids, best+1, best+2)
	}
	for _, id := range ids {
		merged = append(merged, int(id))
	}
	return merged
}

func TestMergesAreTheDefinition(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		// A vocabulary of four letters. Every other token is made of two tokens.
		b := bpe{ids: map[string]int32{}, byteLevel: true, unknown: none, merges: makePairs(40)}
		var tokens []string
		for i, letter := range []string{"a", "b", "c", "d"} {
			b.ids[letter] = int32(i)
			b.bytes[letter[0]] = int32(i)
			tokens = append(tokens, letter)
		}
		for rank := range int32(40) {
			left, right := tokens[random.IntN(len(tokens))], tokens[random.IntN(len(tokens))]
			id, ok := b.ids[left+right]
			if !ok {
				id = int32(len(tokens))
				tokens = append(tokens, left+right)
				b.ids[left+right] = id
			}
			b.merges.set(b.ids[left], b.ids[right], rank, id)
		}
		b.seal()
		var m merger
		for _, n := range []int{1, 2, 3, 10, short - 1, short, short + 1, 200} {
			word, ids := make([]byte, n), make([]int32, n)
			for i := range word {
				word[i] = "abcd"[random.IntN(1+random.IntN(4))]
				ids[i] = b.bytes[word[i]]
			}
			if got, want := b.append(nil, word, &m), b.slowly(ids); !slices.Equal(got, want) {
				t.Fatalf("%q of %q:\n got %d\nwant %d", word, tokens, got, want)
			}
		}
	}
}

// A word of 1 MB takes a moment. With a search from its beginning for each merge, it would take an hour.
func TestLongWordsAreNotQuadratic(t *testing.T) {
	tok := small(t, "byte_level.json")
	if got, want := tok.Count([]byte(strings.Repeat("ab", 1<<19))), 1<<18; got != want { // tokens "abab"
		t.Errorf("%d tokens, want %d", got, want)
	}
}
