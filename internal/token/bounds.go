package token

import (
	"encoding/json"
	"errors"
	"fmt"
)

// A file is small and can still be large in memory, or make a large text of a small one. The bounds below are on the content of
// a file, so that a bad one is refused when it is opened. The largest published ones are Gemma 3's: 262,144 tokens, 514,906
// merges, 6,415 added tokens. The longest token of Qwen 3, Llama 3.1, gpt-oss and DeepSeek V3 has 256 bytes as it is spelled.
const (
	maxTokens     = 1 << 20  // tokens of a vocabulary
	maxMerges     = 1 << 20  // merges of a tokenizer.json
	maxPairs      = 1 << 22  // pairs of tokens that make a token, in tiktoken's files
	maxAdded      = 1 << 18  // added tokens
	maxTokenBytes = 1 << 10  // of a token, and of an added token after its normalization
	maxSection    = 64 << 10 // bytes of a normalizer or a pre-tokenizer; DeepSeek V3's has 591
)

// maxGrowth bounds how many times as long a text may become, and maxInserted how many bytes are put before it. SentencePiece's
// mark for a space has 3 bytes, so Gemma 3's texts may grow to 3 times their length. With NFKC before it that is 33 times.
const (
	maxGrowth   = 64
	maxInserted = 1 << 10
)

// growthOf is the largest factor by which a form of Unicode makes a text in UTF-8 longer (Unicode Standard Annex 15, "Stabilized
// Strings", maximum expansion).
func growthOf(form string) int {
	if form == "NFC" || form == "NFD" {
		return 3
	}
	return 11
}

// A text is refused when it is counted, not when the file is opened, if it becomes too large with all that normalization
// inserts, or if its parts do. A dataset's entry has at most 8 MiB.
const (
	maxText   = 32 << 20 // bytes of a normalized text
	maxWord   = 4 << 20  // bytes that are merged as one: each takes up to 50 bytes of memory
	maxSearch = 256      // bytes that patterns and added tokens are compared with, for each byte of a text and 1,024 more
	largest   = 1 << 18  // bytes: texts that may become longer are counted one after the other
)

var (
	errLongText = fmt.Errorf("want a text of at most %d bytes with what the tokenizer's normalizers insert, got more", maxText)
	errLongWord = fmt.Errorf("want words of at most %d bytes after the tokenizer's pre-tokenizers, got a longer one", maxWord)
	errSlowText = fmt.Errorf("want a text that the tokenizer's patterns and added tokens look at %d times at most, got more", maxSearch)
)

// grows multiplies the growth of texts by a step's. inserts: bytes that the step puts before a text.
func (t *Tokenizer) grows(field string, factor, inserts int) error {
	t.growth, t.inserted = t.growth*factor, t.inserted*factor+inserts
	if t.growth > maxGrowth {
		return fmt.Errorf("%.60s: want normalizers that make a text at most %d times as long, got %d times", field, maxGrowth, t.growth)
	}
	if t.inserted > maxInserted {
		return fmt.Errorf("%.60s: want normalizers that insert at most %d bytes before a text, got %d", field, maxInserted, t.inserted)
	}
	return nil
}

// replaces is the factor by which a replacement makes a text longer, at least 1.
func replaces(old, content int) int { return max(1, (content+old-1)/old) }

// An excess is an error of a part that is too large. What follows the part has not been read.
type excess string

func (e excess) Error() string { return string(e) }

// A section is a normalizer or a pre-tokenizer with all its parts; nil: there is none.
type section struct{ *component }

// UnmarshalJSON refuses a long one before it is parsed: a component takes a hundred times its bytes.
func (s *section) UnmarshalJSON(data []byte) error {
	if len(data) > maxSection {
		return excess(fmt.Sprintf("normalizer, pre_tokenizer: want at most %d bytes each, got %d", maxSection, len(data)))
	}
	return json.Unmarshal(data, &s.component)
}

type vocabulary map[string]int32

// UnmarshalJSON refuses a large one before it is parsed.
func (v *vocabulary) UnmarshalJSON(data []byte) error {
	if *v != nil { // encoding/json would add to it
		return errors.New("model.vocab: want one, got two")
	}
	if n := elements(data); n > maxTokens {
		return excess(fmt.Sprintf("model.vocab: want at most %d tokens, got %d", maxTokens, n))
	}
	return located(json.Unmarshal(data, (*map[string]int32)(v)), "model.vocab")
}

type addedTokens []struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	Lstrip     bool   `json:"lstrip"`
	Rstrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
}

// UnmarshalJSON refuses a long list before it is parsed.
func (a *addedTokens) UnmarshalJSON(data []byte) error {
	if n := elements(data); n > maxAdded {
		return excess(fmt.Sprintf("added_tokens: want at most %d, got %d", maxAdded, n))
	}
	type plain addedTokens
	return located(json.Unmarshal(data, (*plain)(a)), "added_tokens")
}

// elements is the number of elements of a JSON list or object, and at least that of any other value. It makes no copy.
func elements(data []byte) int { return 1 + commas(data, 1) }

// commas is the number of commas between the elements of all lists and objects at a depth, which is 1 for the value itself.
func commas(data []byte, at int) int {
	n, depth := 0, 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case ',':
			if depth == at {
				n++
			}
		}
	}
	return n
}
