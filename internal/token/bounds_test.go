package token

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// letters is a tokenizer.json of a few letters with other sections.
func letters(sections string) string {
	return `{` + sections + `"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "aa": 2}, "merges": ["a a"]}}`
}

// replace is a Replace of "a" by n of them.
func replace(n int) string {
	return `{"type": "Replace", "pattern": {"String": "a"}, "content": "` + strings.Repeat("a", n) + `"}`
}

// list is a JSON list of n elements.
func list(n int, element func(i int) string) string {
	var b strings.Builder
	for i := range n {
		if b.WriteString(element(i)); i+1 < n {
			b.WriteByte(',')
		}
	}
	return "[" + b.String() + "]"
}

// A file that makes large texts of small ones, or is larger in memory than in bytes, is refused when it is opened.
func TestFilesAreBounded(t *testing.T) {
	long, some := strings.Repeat("a", maxTokenBytes+1), func(string) func(int) string { return func(int) string { return `"a a"` } }
	sequence := func(steps ...string) string {
		return letters(`"normalizer": {"type": "Sequence", "normalizers": [` + strings.Join(steps, ",") + `]},`)
	}
	nested := strings.Repeat(`{"type": "Sequence", "normalizers": [`, maxSection/32) + strings.Repeat("]}", maxSection/32)
	for name, c := range map[string]struct{ content, want string }{
		"three replacements":     {sequence(replace(1000), replace(1000), replace(1000)), "normalizer.normalizers[0]: want normalizers that make a text at most 64 times as long, got 1000 times"},
		"their product":          {sequence(replace(8), replace(8), replace(2)), "normalizer.normalizers[2]: want normalizers that make a text at most 64 times as long, got 128 times"},
		"forms and replacements": {sequence(`{"type": "NFKC"}`, replace(6)), "normalizer.normalizers[1]: want normalizers that make a text at most 64 times as long, got 66 times"},
		"a pattern":              {sequence(`{"type": "Replace", "pattern": {"Regex": "a+"}, "content": "` + strings.Repeat("a", 65) + `"}`), "normalizer.normalizers[0]: want normalizers that make a text at most 64 times as long, got 65 times"},
		"spaces": {
			letters(`"pre_tokenizer": {"type": "Metaspace", "replacement": "` + strings.Repeat("a", 65) + `"},`),
			"pre_tokenizer: want normalizers that make a text at most 64 times as long, got 65 times",
		},
		"what is put before": {sequence(`{"type": "Prepend", "prepend": "`+strings.Repeat("a", 100)+`"}`, replace(11)), "normalizer.normalizers[1]: want normalizers that insert at most 1024 bytes before a text, got 1100"},
		"many parts":         {letters(`"normalizer": ` + nested + `,`), fmt.Sprintf("normalizer, pre_tokenizer: want at most 65536 bytes each, got %d", len(nested))},
		"tokens": {
			`{"model": {"type": "BPE", "merges": [], "vocab": {` + strings.Trim(list(maxTokens+1, func(int) string { return `"a":0` }), "[]") + `}}}`,
			"model.vocab: want at most 1048576 tokens, got 1048577",
		},
		"two vocabularies":   {`{"model": {"type": "BPE", "merges": [], "vocab": {"a": 0}, "vocab": {"b": 0}}}`, "model.vocab: want one, got two"},
		"merges":             {`{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ` + list(maxMerges+1, some("")) + `}}`, "model.merges: want at most 1048576, got 1048577"},
		"merges of more":     {`{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "a"], ` + list(maxMerges+1, some("")) + `]}}`, "model.merges: want two tokens each, got 1048579 in 2"},
		"a long type":        {`{"model": {"type": "` + long + `", "vocab": {"a": 0}, "merges": []}}`, `model.type: want "BPE", got "` + long[:60] + `"`},
		"a long unknown one": {`{"model": {"type": "BPE", "unk_token": "` + long + `", "vocab": {"a": 0}, "merges": []}}`, `model.unk_token: want a token of the vocabulary, got "` + long[:60] + `"`},
		"a long prefix":      {`{"model": {"type": "BPE", "continuing_subword_prefix": "` + long + `", "vocab": {"a": 0}, "merges": []}}`, `model.continuing_subword_prefix: want none, got "` + long[:60] + `"`},
		"a long suffix":      {`{"model": {"type": "BPE", "end_of_word_suffix": "` + long + `", "vocab": {"a": 0}, "merges": []}}`, `model.end_of_word_suffix: want none, got "` + long[:60] + `"`},
		"a long component":   {letters(`"normalizer": {"type": "` + long + `"},`), `normalizer.type: want Sequence, NFC, NFD, NFKC, NFKD, Prepend or Replace, got "` + long[:60] + `"`},
		"added tokens":       {letters(`"added_tokens": ` + list(maxAdded+1, func(int) string { return `{}` }) + `,`), "added_tokens: want at most 262144, got 262145"},
		"a long token":       {`{"model": {"type": "BPE", "merges": [], "vocab": {"` + long + `": 0}}}`, `model.vocab: want tokens of at most 1024 bytes, got 1025: "` + long[:60] + `"`},
		"a long added one":   {letters(`"added_tokens": [{"content": "` + long + `"}],`), `added_tokens[0].content: want at most 1024 bytes with what normalizers insert, got more: "` + long[:60] + `"`},
		"one that grows":     {letters(`"normalizer": ` + replace(64) + `, "added_tokens": [{"normalized": true, "content": "` + long[:17] + `"}],`), `added_tokens[0].content: want at most 1024 bytes with what normalizers insert, got more: "` + long[:17] + `"`},
		"a long rank":        {base64.StdEncoding.EncodeToString([]byte(long)) + " 0\n", "line 1: want tokens of at most 1024 bytes, got 1025"},
		"ranks of all runs":  {runs(), "want at most 4194304 pairs of tokens that make a token, got more"},
	} {
		if _, err := read("cl100k_base.tiktoken", []byte(c.content)); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %.300v\nwant %s", name, err, c.want)
		}
	}
}

// runs has tokens whose parts are tokens too, however they are divided.
func runs() string {
	var b strings.Builder
	for letter := range 9 {
		for n := 1; n <= 1000; n++ {
			fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{byte(letter)}, n)), letter*1000+n)
		}
	}
	return b.String()
}

// A text that becomes too large, has too long a word or makes a pattern try too much has an error; it takes neither the memory nor the
// time. A text of the same size that does not is counted.
func TestTextsAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("the texts are long, and one goroutine reads them")
	}
	const entry = 8 << 20 // the largest of a dataset
	long := bytes.Repeat([]byte("a"), entry)
	slow := `"pre_tokenizer": {"type": "Split", "behavior": "Isolated", "pattern": {"Regex": "a*a*a*b|a"}},`
	prefixes := list(900, func(i int) string { return `{"content": "` + strings.Repeat("a", i) + `c"}` })
	for name, c := range map[string]struct {
		sections string
		text     []byte
		want     error
	}{
		"many times as long":     {`"normalizer": ` + replace(64) + `,`, long, errLongText},
		"by forms":               {`"normalizer": {"type": "NFKD"},`, bytes.Repeat([]byte("\ufdfa"), entry/3), errLongText},
		"by spaces":              {`"pre_tokenizer": {"type": "Metaspace", "replacement": "aaaaaaaa"},`, bytes.Repeat([]byte(" "), entry), errLongText},
		"before each part":       {`"normalizer": {"type": "Prepend", "prepend": "` + strings.Repeat("a", 1000) + `"}, "added_tokens": [{"content": "|"}],`, bytes.Repeat([]byte("|a"), entry/2), errLongText},
		"one word":               {``, long, errLongWord},
		"patterns":               {slow, long[:1<<17], errSlowText},
		"patterns that replace":  {`"normalizer": {"type": "Replace", "pattern": {"Regex": "a*a*a*b"}, "content": ""},`, long[:1<<17], errSlowText},
		"many added tokens":      {`"added_tokens": ` + prefixes + `,`, long[:1<<17], errSlowText},
		"letters":                {`"pre_tokenizer": {"type": "Split", "behavior": "Isolated", "pattern": {"Regex": "a"}},`, long[:1<<20], nil},
		"three times as long":    {`"normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},`, bytes.Repeat([]byte("a "), 1<<20), nil},
		"as much as a word may":  {``, long[:maxWord], nil},
		"forms in several parts": {`"normalizer": {"type": "NFD"},`, bytes.Repeat([]byte("\u1e69"), 1<<20/3), nil},
	} {
		opened, err := read("file", []byte(letters(c.sections)))
		if err != nil {
			t.Fatal(name, err)
		}
		if _, err := opened.Count(c.text); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		if c.want == nil {
			continue
		}
		if prefix, n, err := opened.Cut(c.text, maxText+1); !errors.Is(err, c.want) || len(prefix) != 0 || n != 0 {
			t.Errorf("%s, cut: got %d bytes, %d tokens, %v, want %v", name, len(prefix), n, err, c.want)
		}
	}
}

// TestGrowthOfForms finds the largest factor among all characters.
func TestGrowthOfForms(t *testing.T) {
	for name, form := range forms {
		most := 0
		for r := rune(0); r <= utf8.MaxRune; r++ {
			if one := []byte(string(r)); utf8.ValidRune(r) {
				most = max(most, (len(form.Bytes(one))+len(one)-1)/len(one))
			}
		}
		if most != growthOf(name) {
			t.Errorf("%s: grows %d times, want %d", name, most, growthOf(name))
		}
	}
}

// TestMemoryOfFiles holds the memory in which a file is opened to its size, for files that are large in memory: of many short tokens,
// of many merges in both forms, of long tokens.
func TestMemoryOfFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("the files are large")
	}
	id := func(i int) string { return fmt.Sprintf("%x", i) }
	vocab := strings.Trim(list(maxTokens-1, func(i int) string { return fmt.Sprintf("%q:%d", id(i), i) }), "[]")
	for name, content := range map[string]string{
		"tokens":             `{"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "model": {"type": "BPE", "merges": [], "vocab": {` + vocab + `}}}`,
		"merges":             `{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ` + list(maxMerges, func(int) string { return `"a b"` }) + `}}`,
		"merges as lists":    `{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ` + list(maxMerges, func(int) string { return `["a","b"]` }) + `}}`,
		"merges of many":     `{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [[""` + strings.Repeat(`,""`, (maxFile-1000)/3) + `]]}}`,
		"long tokens":        `{"model": {"type": "BPE", "merges": [], "vocab": {` + strings.Trim(list(60_000, func(i int) string { return fmt.Sprintf("%q:%d", strings.Repeat(id(i), 1020/len(id(i))), i) }), "[]") + `}}}`,
		"long merges":        `{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["` + strings.Repeat("a", maxFile-1000) + ` a"]}}`,
		"a long added token": letters(`"added_tokens": [{"content": "` + strings.Repeat("a", maxFile-1000) + `"}],`),
		"lists without end":  letters(`"normalizer": {"normalizers": ` + list(1<<24, func(int) string { return "{}" }) + `},`),
	} {
		path := filepath.Join(t.TempDir(), "tokenizer.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		size := len(content)
		peak := peakOf(maxMemory, func() { _, _ = Open(path) })
		t.Logf("%s: %d MiB of file, %d MiB of memory", name, size>>20, peak>>20)
		if peak > maxMemory {
			t.Errorf("%s: %d MiB of file take %d MiB, want at most %d", name, size>>20, peak>>20, maxMemory>>20)
		}
	}
}

// maxMemory is the memory in which any file is opened.
const maxMemory = 256 << 20

// TestMemoryOfTexts holds the memory in which many texts are counted at once to that of one.
func TestMemoryOfTexts(t *testing.T) {
	if testing.Short() {
		t.Skip("the words are long")
	}
	tok := small(t, "byte_level.json")
	word := bytes.Repeat([]byte("ab"), maxWord/2)
	const most = 160 << 20
	peak := peakOf(most, func() {
		done := make(chan error)
		for range 3 {
			go func() { _, err := tok.Tokenizer.Count(word); done <- err }()
		}
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
	if t.Logf("%d MiB", peak>>20); peak > most {
		t.Errorf("three words of %d MiB at once take %d MiB, want at most %d", maxWord>>20, peak>>20, most>>20)
	}
}

// peakOf returns the largest heap while a function runs, with little garbage in it: the least of three runs where one is above a bound, for how
// much garbage stands at the peak is chance.
func peakOf(most uint64, f func()) uint64 {
	least := onePeakOf(f)
	for n := 1; n < 3 && least > most; n++ {
		least = min(least, onePeakOf(f))
	}
	return least
}

func onePeakOf(f func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	over, peak := make(chan struct{}), make(chan uint64)
	go func() {
		most := uint64(0)
		for every := time.NewTicker(5 * time.Millisecond); ; { // a reading stops the world
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
			select {
			case <-every.C:
			case <-over:
				peak <- most
				return
			}
		}
	}()
	f()
	close(over)
	return max(<-peak, before.HeapAlloc) - before.HeapAlloc
}
