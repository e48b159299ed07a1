//go:build linux && !race

package mutants_test

import (
	"bytes"
	"math/rand/v2"
	"regexp"
)

// maxBytes bounds a mutant, so that thousands of them take minutes.
const maxBytes = 1 << 18

var (
	number = regexp.MustCompile(`[0-9]+`)
	member = regexp.MustCompile(`"[^"]*"\s*:\s*[^,{}\[\]]+`)
	text   = regexp.MustCompile(`"[^"]*"`)
)

// numbers are those at which fields have their limits.
var numbers = []string{"0", "-1", "1e308", "16777216", "16777217", "2147483648", "9223372036854775808", "1e-320", "NaN", "[]", "{}", "null"}

// mutate returns a seed with one to three changes. Most changes keep its syntax. The same number gives the same mutant.
func mutate(seeds [][]byte, index int) []byte {
	random := rand.New(rand.NewPCG(uint64(index), 40))
	one := func() []byte { return seeds[random.IntN(len(seeds))] }
	m := bytes.Clone(one())
	for range 1 + random.IntN(3) {
		if len(m) == 0 {
			return m
		}
		at := random.IntN(len(m))
		end := at + random.IntN(len(m)-at)
		switch random.IntN(14) {
		case 0: // flip bits
			for range 1 + random.IntN(8) {
				m[random.IntN(len(m))] ^= 1 << random.IntN(8)
			}
		case 1: // cut short, or a part cut out
			m = append(bytes.Clone(m[:at]), m[end:]...)
		case 2: // splice with another seed
			other := one()
			m = append(bytes.Clone(m[:at]), other[random.IntN(len(other)+1):]...)
		case 3: // repeat a part
			end = min(end, at+1<<10)
			times := 1 + random.IntN(1+maxBytes/(end-at+1))
			m = bytes.Join([][]byte{m[:at], bytes.Repeat(m[at:end], times), m[end:]}, nil)
		case 4, 8, 9: // another number
			m = replaced(m, number, random, func([]byte) []byte { return []byte(numbers[random.IntN(len(numbers))]) })
		case 5, 10, 11: // a key twice
			m = replaced(m, member, random, func(found []byte) []byte { return bytes.Join([][]byte{found, found}, []byte(",")) })
		case 6, 12, 13: // a long text
			m = replaced(m, text, random, func(found []byte) []byte {
				return append(append([]byte(`"`), bytes.Repeat(bytes.Trim(found, `"`), 1+random.IntN(5000))...), '"')
			})
		case 7: // deep lists
			depth := 1 + random.IntN(20_000)
			m = replaced(m, text, random, func(found []byte) []byte {
				return bytes.Join([][]byte{bytes.Repeat([]byte("["), depth), bytes.Repeat([]byte("]"), depth)}, found)
			})
		}
		m = m[:min(len(m), maxBytes)]
	}
	return m
}

// replaced replaces one match.
func replaced(m []byte, of *regexp.Regexp, random *rand.Rand, by func(found []byte) []byte) []byte {
	all := of.FindAllIndex(m, 1000)
	if len(all) == 0 {
		return m
	}
	at := all[random.IntN(len(all))]
	return bytes.Join([][]byte{m[:at[0]], by(m[at[0]:at[1]]), m[at[1]:]}, nil)
}
