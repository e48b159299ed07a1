package token

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// longest returns the result that Cut promises, by trying all prefixes.
func longest(tok sure, text []byte, n int) (prefix []byte, tokens int) {
	if tokens = tok.Count(text); tokens <= n {
		return text, tokens
	}
	prefix, tokens = text[:0], 0
	for at := 0; at < len(text); {
		_, size := utf8.DecodeRune(text[at:])
		at += size
		if got := tok.Count(text[:at]); got <= n && got >= tokens {
			prefix, tokens = text[:at], got
		}
	}
	return prefix, tokens
}

func TestCut(t *testing.T) {
	tok := small(t, "byte_level.json") // some of its tokens are " the", "ab", "abab" and "123"
	f := func(text string, n int, want string, wantTokens int) {
		t.Helper()
		if got, tokens := tok.Cut([]byte(text), n); string(got) != want || tokens != wantTokens {
			t.Errorf("%q cut to %d: %q of %d tokens, want %q of %d", text, n, got, tokens, want, wantTokens)
		}
	}
	f("", 3, "", 0)
	f(" the the the", -1, "", 0)
	f(" the the the", 0, "", 0)
	f(" the the the", 1, " the", 1)
	f(" the the the", 2, " the the", 2)
	f(" the the the", 3, " the the the", 3)
	f(" the the the", 9, " the the the", 3)
	f("abababab", 1, "abab", 1)
	f("ababab123", 2, "ababab", 2)
	f("\U0001f4a9\U0001f4a9", 1, "", 0) // three tokens each; one or two tokens are no whole character
	f("\U0001f4a9\U0001f4a9", 2, "", 0)
	f("\U0001f4a9\U0001f4a9", 3, "\U0001f4a9", 3)
	f("\U0001f4a9\U0001f4a9", 5, "\U0001f4a9", 3)
	f(" the e\u0301 the", 3, " the e\u0301", 3) // normalized to " the", " ", "é"
	f("\xff\xff the", 3, "\xff", 3)             // U+FFFD is three tokens
	f(" the<|end|> the the", 2, " the<|end|>", 2)
	f(strings.Repeat("ab", 5000), 1000, strings.Repeat("ab", 2000), 1000)
}

func TestCutIsTheLongest(t *testing.T) {
	texts := 300
	if testing.Short() {
		texts = 50
	}
	random := rand.New(rand.NewPCG(5, 6))
	for name, tok := range smallOnes(t) {
		for range texts {
			text := []byte(made(random, 40))
			n := 1 + random.IntN(tok.Count(text)+1)
			got, tokens := tok.Cut(text, n)
			want, wantTokens := longest(tok, text, n)
			if tokens != wantTokens || !bytes.Equal(got, want) {
				t.Errorf("%s: %q cut to %d: %q of %d tokens, want %q of %d", name, text, n, got, tokens, want, wantTokens)
			}
		}
	}
}

// The cut is also exact in a word that is too long to try every end.
func TestCutInALongWord(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 9))
	for name, tok := range smallOnes(t) {
		var text []byte
		for len(text) < 20_000 {
			text = append(text, "abehnt"[random.IntN(6)])
		}
		total := tok.Count(text)
		for range 3 {
			n := 1 + random.IntN(total-1)
			got, tokens := tok.Cut(text, n)
			if tokens != n || tok.Count(got) != n || !bytes.HasPrefix(text, got) {
				t.Errorf("%s: cut to %d of %d: %d bytes of %d tokens", name, n, total, len(got), tokens)
			}
		}
	}
}
