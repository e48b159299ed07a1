package dataset

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"replayd/internal/trace"
)

// tries is how many beginnings of a text are tried before a slightly shorter text is taken.
const tries = 8

// Texts returns a func that appends a text of the given number of tokens for a row to dst. The text is the set's
// prompts one after the other, cut where the tokenizer counts that many tokens. Seed, salt, row number and pass select
// the first prompt. Sometimes no cut has that exact count, because the last token ends inside a character or in a blank
// that a chat template would trim. Then the func tries another beginning; after eight beginnings, the text is a little
// shorter. It is empty if the tokenizer cannot count such a text. The func may be called concurrently. Texts returns nil if the set was opened without a tokenizer or if all
// its prompts are blank.
func (s *Set) Texts(seed uint64) func(dst []byte, r *trace.Record, salt uint64, tokens int) []byte {
	if s.tokenizer == nil || len(s.texts) == 0 {
		return nil
	}
	return func(dst []byte, r *trace.Record, salt uint64, tokens int) []byte {
		index := mix(seed, salt, uint64(r.Number), uint64(r.Pass))
		start, most := len(dst), 0
		var best []byte
		for try := range uint64(tries) {
			at := below(mix(index, try), len(s.texts))
			first := s.texts[at]
			if try > 0 { // begin inside the prompt, because all texts of whole rounds end between two prompts
				if _, rest, found := strings.Cut(first[below(mix(index, try, 1), len(first)):], " "); found && rest != "" {
					first = rest
				}
			}
			text, got := s.cut(dst, first, at+1, tokens)
			if got == tokens {
				return text
			}
			if got == uncounted {
				break // the others would take as long
			}
			if got > most {
				best, most = bytes.Clone(text[start:]), got
			}
		}
		return append(dst, best...)
	}
}

const (
	uncounted = -1
	// No token has more bytes. A longer text for each token has characters that the tokenizer leaves out, and would never be long enough.
	tokenBytes = 1 << 10
)

// cut appends first and then the prompts from index on, and cuts the text at tokens. Where the tokenizer cannot
// count such a text, it got uncounted tokens.
func (s *Set) cut(dst []byte, first string, index, tokens int) (text []byte, got int) {
	start := len(dst)
	room := 4*tokens + 256 // most texts have about 4 bytes per token
	dst = append(dst, strings.TrimSpace(first)...)
	for {
		for ; len(dst)-start < room; index++ {
			dst = append(append(dst, "\n\n"...), s.texts[index%len(s.texts)]...)
		}
		prefix, got, err := s.tokenizer.Cut(dst[start:], tokens)
		if err != nil {
			return dst[:start], uncounted
		}
		if len(prefix) < len(dst)-start {
			if last, _ := utf8.DecodeLastRune(prefix); unicode.IsSpace(last) {
				got--
			}
			return dst[:start+len(prefix)], got
		}
		if got == tokens {
			return dst, got
		}
		if len(dst)-start > tokenBytes*tokens {
			return dst[:start], uncounted
		}
		room *= 2
	}
}
