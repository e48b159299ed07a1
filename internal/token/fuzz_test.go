package token

import (
	"bytes"
	"os"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// FuzzTokens checks properties that hold for any text and vocabulary.
func FuzzTokens(f *testing.F) {
	f.Add([]byte(" the word <|end|> e\u0301 ab\xff\n\n  1234"), 3)
	f.Add([]byte("\U0001f469\u200d\U0001f469 '\u017f \u4e2d\u6587"), 5)
	f.Add(bytes.Repeat([]byte("ab "), 100), 100)
	all := smallOnes(f)
	byteLevel := all["byte_level.json"]
	spelled := map[int]string{}
	for word, id := range byteLevel.model.ids {
		spelled[int(id)] = word
	}
	f.Fuzz(func(t *testing.T, text []byte, n int) {
		if len(text) > 400 {
			t.Skip("the long ones are tried elsewhere")
		}
		for name, tok := range all {
			ids := tok.Encode(text)
			if got := tok.Count(text); got != len(ids) {
				t.Fatalf("%s: %q counts %d, and has %d ids", name, text, got, len(ids))
			}
			cut, tokens := tok.Cut(text, n)
			if !bytes.HasPrefix(text, cut) || tokens > max(n, 0) || tok.Count(cut) != tokens {
				t.Fatalf("%s: %q cut to %d: %q, said to be %d tokens, is %d", name, text, n, cut, tokens, tok.Count(cut))
			}
			if rest := text[len(cut):]; utf8.Valid(text) && !utf8.Valid(rest) {
				t.Fatalf("%s: %q cut to %d ends in a character: %q", name, text, n, cut)
			}
		}
		// Decoding the ids gives the normalized text back: no byte is lost or doubled. Texts with added tokens are
		// skipped.
		var back []byte
		for _, id := range byteLevel.Encode(text) {
			word, ok := spelled[id]
			if !ok {
				return
			}
			back = append(back, word...)
		}
		if want := norm.NFC.Bytes(valid(text)); !bytes.Equal(back, want) {
			t.Fatalf("%q comes back as %q, want %q", text, back, want)
		}
	})
}

// FuzzRead reads damaged files, and counts tokens with each file that can still be read.
func FuzzRead(f *testing.F) {
	for name := range smallOnes(f) {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(allBytes()))
	f.Add([]byte(`{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "": 3}, "merges": [["a", "b"], ["", "a"]]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		opened, err := read("cl100k_base.tiktoken", data)
		if err != nil {
			return
		}
		tok, text := sure{opened}, []byte(" the ab abab\n\n12 \u4e2d\u6587 e\u0301 <|end|>")
		if _, err := opened.Count(text); err != nil {
			return // it searches too long
		}
		if got, want := tok.Count(text), len(tok.Encode(text)); got != want {
			t.Fatalf("counts %d, and has %d ids", got, want)
		}
		if cut, tokens := tok.Cut(text, 4); tok.Count(cut) != tokens {
			t.Fatalf("%q is said to be %d tokens, is %d", cut, tokens, tok.Count(cut))
		}
	})
}
