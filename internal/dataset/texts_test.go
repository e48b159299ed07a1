package dataset

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/token"
	"replayd/internal/trace"
)

// A text of any length has exactly that length by the tokenizer. It depends on seed, row and pass alone.
func TestTextsAreExact(t *testing.T) {
	tok := tokenizer(t)
	rows := 300
	if testing.Short() {
		rows = 100
	}
	for name, s := range map[string]*Set{
		"bundled": func() *Set {
			s, err := Open(t.Context(), Bundled, "", Options{Tokenizer: tok})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}(),
		"three words": open(t, SingleTurn, `{"text": " a "}`+"\n"+`{"text":"  "}`+"\n"+`{"text": "b cde"}`, Options{Tokenizer: tok}),
	} {
		texts := s.Texts(7)
		rng := rand.New(rand.NewPCG(1, 2))
		seen := map[string]bool{}
		for i := range rows {
			r, n := trace.Record{Number: i}, 1+rng.IntN(1+i*10)
			if n > 2 {
				n -= n % 3
			}
			got := texts([]byte("before"), &r, 0, n)
			text := strings.TrimPrefix(string(got), "before")
			if len(text)+6 != len(got) || counted(tok, []byte(text)) != n || !utf8.ValidString(text) {
				t.Fatalf("%s: row %d: %d tokens, want %d: %q", name, i, counted(tok, []byte(text)), n, text)
			}
			if name == "bundled" && text != strings.TrimFunc(text, unicode.IsSpace) {
				t.Fatalf("%s: row %d: a chat template would trim %q", name, i, text)
			}
			seen[text] = true
			if again := texts(nil, &r, 0, n); string(again) != text {
				t.Fatalf("%s: row %d: twice not the same", name, i)
			}
		}
		if name == "bundled" && len(seen) < rows-10 {
			t.Errorf("%d of %d rows have a text of their own", len(seen), rows)
		}
		row, other := trace.Record{Number: 3}, trace.Record{Number: 3, Pass: 1}
		if name == "bundled" && string(texts(nil, &row, 0, 50)) == string(texts(nil, &other, 0, 50)) {
			t.Error("a later pass has the same text")
		}
		if name == "bundled" && string(texts(nil, &row, 0, 50)) == string(s.Texts(8)(nil, &row, 0, 50)) {
			t.Error("another seed has the same text")
		}
	}
	if open(t, SingleTurn, `{"text":"a"}`, Options{}).Texts(1) != nil || open(t, SingleTurn, `{"text":" "}`, Options{Tokenizer: tok}).Texts(1) != nil {
		t.Error("texts without a tokenizer, or without texts")
	}
}

// A text of whole rounds through the set would end after a blank line, whichever prompt it begins with.
func TestTextsOfWholeRounds(t *testing.T) {
	tok := tokenizer(t)
	s := open(t, SingleTurn, `{"text": "one two"}`+"\n"+`{"text": "three four five"}`, Options{Tokenizer: tok})
	round := counted(tok, []byte("one two\n\nthree four five\n\n"))
	for i := range 50 {
		got := string(s.Texts(1)(nil, &trace.Record{Number: i}, 0, 3*round))
		if counted(tok, []byte(got)) != 3*round || strings.TrimSpace(got) != got {
			t.Errorf("row %d: %q has %d tokens, want %d and no blank at its ends", i, got, counted(tok, []byte(got)), 3*round)
		}
	}
}

// If each character is three tokens, only every third length is possible. For other lengths Texts returns the longest
// shorter text.
func TestTextsThatCannotBeExact(t *testing.T) {
	tok := tokenizer(t)
	s := open(t, SingleTurn, `{"text": "漢字漢字"}`, Options{Tokenizer: tok})
	for n, want := range map[int]string{2: "", 3: "漢", 5: "漢", 6: "漢字", 12: "漢字漢字"} {
		if got := string(s.Texts(1)(nil, &trace.Record{}, 0, n)); got != want {
			t.Errorf("%d tokens: got %q, want %q", n, got, want)
		}
	}
}

func TestTextsAtOnce(t *testing.T) {
	s, err := Open(t.Context(), Bundled, "", Options{Tokenizer: tokenizer(t)})
	if err != nil {
		t.Fatal(err)
	}
	texts := s.Texts(1)
	want := texts(nil, &trace.Record{Number: 1}, 0, 500)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 20 {
				if got := texts(nil, &trace.Record{Number: 1}, 0, 500); !cmp.Equal(got, want) {
					t.Error("another text at the same time")
				}
			}
		})
	}
	wait.Wait()
}

// A tokenizer may leave out all characters of a set, or refuse its texts. Then there is no text, and no search without end.
func TestTextsWithoutEnd(t *testing.T) {
	for name, sections := range map[string]string{
		"characters that are left out": ``,
		"texts that are replaced":      `"normalizer": {"type": "Replace", "pattern": {"Regex": "[a-z ]"}, "content": ""},`,
		"texts that take too long":     `"normalizer": {"type": "Replace", "pattern": {"Regex": "[a-z ]*[a-z ]*[a-z ]*z"}, "content": ""},`,
	} {
		if testing.Short() && name == "texts that take too long" { // a minute under the race detector
			continue
		}
		path := filepath.Join(t.TempDir(), "tokenizer.json")
		if err := os.WriteFile(path, []byte(`{`+sections+`"model": {"type": "BPE", "vocab": {"y": 0}, "merges": []}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		tok, err := token.Open(path)
		if err != nil {
			t.Fatal(name, err)
		}
		s := open(t, SingleTurn, `{"text": "ab ac ad"}`, Options{Tokenizer: tok})
		if got := s.Texts(1)([]byte("x"), &trace.Record{}, 0, 1000); string(got) != "x" {
			t.Errorf("%s: got %d bytes", name, len(got))
		}
	}
}
