package token

import (
	"regexp"
	"strings"
)

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
