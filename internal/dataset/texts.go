package dataset

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"replayd/internal/trace"
)

// tries is from how many places a text is begun before one that is not quite as long is taken.
const tries = 8

// Texts returns a func that appends to dst a text of so many tokens for a row: the set's prompts one after the other, from
// one on that depends on the seed, the salt, the row's number and its pass, cut where the tokenizer counts so many. Where
// no cut counts exactly so, because the last token's place is inside of a character or ends in a blank that a chat template
// would trim, another beginning is tried; after eight of them the text is a little shorter. The func may be used by several
// goroutines at once. It is nil where the set was opened without a tokenizer, and where all its prompts are blank.
func (s *Set) Texts(seed uint64) func(dst []byte, r *trace.Record, salt uint64, tokens int) []byte {
	if s.tokenizer == nil || len(s.texts) == 0 {
		return nil
	}
	return func(dst []byte, r *trace.Record, salt uint64, tokens int) []byte {
		place := mix(seed, salt, uint64(r.Number), uint64(r.Pass))
		start, most := len(dst), 0
		var best []byte
		for try := range uint64(tries) {
			at := below(mix(place, try), len(s.texts))
			first := s.texts[at]
			if try > 0 { // in the middle of it: a whole number of rounds ends between two prompts, wherever it begins
				if _, rest, found := strings.Cut(first[below(mix(place, try, 1), len(first)):], " "); found && rest != "" {
					first = rest
				}
			}
			text, got := s.cut(dst, first, at+1, tokens)
			if got == tokens {
				return text
			}
			if got > most {
				best, most = bytes.Clone(text[start:]), got
			}
		}
		return append(dst, best...)
	}
}

// cut appends a prompt and those from a place on, and cuts them.
func (s *Set) cut(dst []byte, first string, place, tokens int) (text []byte, got int) {
	start := len(dst)
	room := 4*tokens + 256 // most texts have about 4 bytes to the token
	dst = append(dst, strings.TrimSpace(first)...)
	for {
		for ; len(dst)-start < room; place++ {
			dst = append(append(dst, "\n\n"...), s.texts[place%len(s.texts)]...)
		}
		prefix, got := s.tokenizer.Cut(dst[start:], tokens)
		if len(prefix) < len(dst)-start {
			if last, _ := utf8.DecodeLastRune(prefix); unicode.IsSpace(last) {
				got--
			}
			return dst[:start+len(prefix)], got
		}
		if got == tokens {
			return dst, got
		}
		room *= 2
	}
}
