// Package token counts tokens. It has lists of words and numbers that are one token each, so that N words make a prompt of
// N tokens without a tokenizer. ORIGIN.md says how the lists were made and for which tokenizers they hold. To count or cut
// other texts, the package reads the tokenizer's own file (Open).
package token

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// Words is a list of words. Each word is one token when it has one leading space. It is read-only and shared.
type Words struct {
	FirstID, LastID int // token ids, inclusive, that are ordinary text in every tokenizer for which the list holds

	text     string   // all words, each with its leading space
	at       []uint32 // word i is text[at[i]:at[i+1]]
	starters []uint32 // indices in at of the words that may begin a text
}

//go:embed main.txt
var mainWords string

//go:embed all.txt
var allWords string

// The ids below 1,000 are special in tekken and Gemma 3. The smallest vocabulary has 100,256 ids. Mistral's 32k
// vocabularies, for which only "all" holds, end at 31,999 and begin with bytes and control tokens.
var lists = map[string]func() *Words{
	"main": sync.OnceValue(func() *Words { return newWords(mainWords, 1_000, 99_999) }),
	"all":  sync.OnceValue(func() *Words { return newWords(allWords, 1_027, 31_999) }),
}

// List returns the list of a name: "main" (13,912 words: Qwen3, Llama 3, gpt-oss, GPT-4o, Gemma 3, cl100k) or "all" (6,152
// words: these, DeepSeek-V3 and Mistral).
func List(name string) (*Words, error) {
	if list := lists[name]; list != nil {
		return list(), nil
	}
	return nil, fmt.Errorf(`words: want "main" or "all", got %q`, name)
}

// starting lists words that are also one token without a leading space. A text that begins with one of them, without the
// space, is exact with every tokenizer: some chat templates trim the content (Llama 3.1, Gemma 3), and SentencePiece
// inserts its own space. All of them are in both lists.
const starting = `about after always because before between every first from here how now once
since some start then there this under what when where while with`

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

// Len returns how many words there are.
func (w *Words) Len() int { return len(w.at) - 1 }

// Bytes returns the total length of all words, including a leading space each.
func (w *Words) Bytes() int { return len(w.text) }

// Starters returns the number of words that may begin a text.
func (w *Words) Starters() int { return len(w.starters) }

// Append appends a space and word i, 0 ≤ i < Len: one token within a text.
func (w *Words) Append(dst []byte, i int) []byte {
	return append(dst, w.text[w.at[i]:w.at[i+1]]...)
}

// AppendStarter appends starter i, 0 ≤ i < Starters, without a space: one token at the beginning of a text.
func (w *Words) AppendStarter(dst []byte, i int) []byte {
	at := w.starters[i]
	return append(dst, w.text[w.at[at]+1:w.at[at+1]]...)
}

// end matches the end of a family's name: the size, the variant, Ollama's tag.
const end = `([-:_]|$)`

// families lists the model names whose tokenizers fit a word list: those in ORIGIN.md, and derived models that keep the
// vocabulary. A newer generation often has another vocabulary (Qwen3.5, Llama 4), so the generation's number must match
// exactly.
var families = []struct {
	list string
	name *regexp.Regexp
}{
	{"main", regexp.MustCompile(`^(qwen-?3|qwen-?2(\.5)?|qwq)` + end)},
	{"main", regexp.MustCompile(`^(meta-)?llama-?3([._-][0-3])?` + end)},
	{"main", regexp.MustCompile(`^(gpt-?oss|gpt-?4o|gpt-4\.1|chatgpt-4o|gpt-4|gpt-3\.5-turbo|o200k|cl100k)` + end)},
	{"main", regexp.MustCompile(`^gemma-?3` + end)},
	{"main", regexp.MustCompile(`^phi-?4(-reasoning.*)?$`)},
	{"main", regexp.MustCompile(`^deepseek-r1-(distill|0528)-(qwen3?|llama)` + end)},
	{"all", regexp.MustCompile(`^deepseek-(v3|r1)(\.[12])?` + end)},
	{"all", regexp.MustCompile(`^(mistral-(7b|nemo|small)|mixtral|ministral|codestral|devstral|magistral)` + end)},
}

// Family returns the word list that fits the model of a name, without its tokenizer: "main" or "all". The name may begin
// with its owner, as in Qwen/Qwen3-0.6B. Case does not matter. ok is false if no list is known to fit.
func Family(name string) (list string, ok bool) {
	name = strings.ToLower(strings.TrimRight(name, "/"))
	name = name[strings.LastIndexByte(name, '/')+1:]
	for _, f := range families {
		if f.name.MatchString(name) {
			return f.list, true
		}
	}
	return "", false
}
