// Package token counts tokens. It knows words and numbers that are one token each, so that N of them are a prompt of N tokens
// without a tokenizer: ORIGIN.md says how the lists were made, and for which tokenizers they hold. Where texts
// from outside have to be counted or cut, it reads the tokenizer's own file (Open).
package token

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
)

// Words is a list of words, each one token when written with one leading space. It is read-only, and shared.
type Words struct {
	FirstID, LastID int // token ids, both included, that are ordinary text in every tokenizer the list holds for

	text     string   // all words, each with its leading space
	at       []uint32 // word i is text[at[i]:at[i+1]]
	starters []uint32 // places in at of the words that may begin a text
}

//go:embed main.txt
var mainWords string

//go:embed all.txt
var allWords string

// The ids below 1,000 are special ones in tekken and Gemma 3, and vocabularies of 100,256 end just above. The 32k
// ones of Mistral, which only "all" covers, end at 31,999 and begin with bytes and control tokens.
var (
	mainList = sync.OnceValue(func() *Words { return newWords(mainWords, 1_000, 99_999) })
	allList  = sync.OnceValue(func() *Words { return newWords(allWords, 1_027, 31_999) })
)

// List returns the list of that name: "main" (13,912 words: Qwen3, Llama 3, gpt-oss, GPT-4o, Gemma 3, cl100k) or
// "all" (6,152 words: DeepSeek-V3 and Mistral too).
func List(name string) (*Words, error) {
	switch name {
	case "main":
		return mainList(), nil
	case "all":
		return allList(), nil
	}
	return nil, fmt.Errorf(`words: want "main" or "all", got %q`, name)
}

// starting holds words that are one token without a leading space too. A text that begins with one of them, without
// the space, is exact everywhere: some chat templates trim the content (Llama 3.1, Gemma 3), and SentencePiece
// puts a space of its own in front. All of them are in both lists.
const starting = `about after always because before between every first from here how now once
since some start then there this under what when where while with`

// newWords takes a file of one word a line.
func newWords(file string, firstID, lastID int) *Words {
	w := &Words{
		FirstID: firstID, LastID: lastID,
		text: " " + strings.ReplaceAll(strings.TrimSuffix(file, "\n"), "\n", " "),
	}
	may := map[string]bool{}
	for _, s := range strings.Fields(starting) {
		may[s] = true
	}
	for i := range len(w.text) {
		if w.text[i] != ' ' {
			continue
		}
		if n := len(w.at); n > 0 && may[w.text[w.at[n-1]+1:i]] {
			w.starters = append(w.starters, uint32(n-1))
		}
		w.at = append(w.at, uint32(i))
	}
	w.at = append(w.at, uint32(len(w.text)))
	return w
}

// Len is the number of words.
func (w *Words) Len() int { return len(w.at) - 1 }

// Bytes is the length of all words together, a leading space each included.
func (w *Words) Bytes() int { return len(w.text) }

// Starters is the number of words that may begin a text.
func (w *Words) Starters() int { return len(w.starters) }

// Append appends a space and word i, 0 ≤ i < Len: one token inside a text.
func (w *Words) Append(dst []byte, i int) []byte {
	return append(dst, w.text[w.at[i]:w.at[i+1]]...)
}

// AppendStarter appends starter i, 0 ≤ i < Starters, without a space: one token at the beginning of a text.
func (w *Words) AppendStarter(dst []byte, i int) []byte {
	at := w.starters[i]
	return append(dst, w.text[w.at[at]+1:w.at[at+1]]...)
}
