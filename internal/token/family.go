package token

import (
	"regexp"
	"strings"
)

// end is where a family's name ends: at the size, the variant, Ollama's tag.
const end = `([-:_]|$)`

// families are the model names for whose tokenizers a list holds: those of ORIGIN.md, and models that were made from them and keep
// their vocabulary. A newer generation of the same name has another one as often as not (Qwen3.5, Llama 4), so the numbers are whole.
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

// Family gives the word list that is exact for a model of that name, without its tokenizer: "main" or "all". The name may have its
// owner in front, as Qwen/Qwen3-0.6B, and any case. ok is false for a name that is not known, or not surely.
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
