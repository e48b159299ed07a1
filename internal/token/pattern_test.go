package token

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlclark/regexp2"
)

// The patterns in the files of published tokenizers.
var published = map[string]string{
	"gpt2":     `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
	"llama3":   `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	"qwen3":    `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	"o200k":    `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	"tekken":   `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	"deepseek": "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
	"han":      `[一-龥぀-ゟ゠-ヿ]+`,
	"digits":   `\p{N}{1,3}`,
}

// Texts of fragments take every branch of the patterns, and leave it in the middle.
var fragments = strings.Split("a|B|é|É|ß|ǅ|ʰ|中|文|の|カ|ا|ش|д|Д|न|ि|्|ก|́|\u200d|👩|🏽|🇩|1|2|٣|Ⅷ|²|'|'s|'S|'ſ|'ll|'Re|'v| |  |   |\n|\r\n|\t|\u00a0|\u3000|\u0085|\u2028|.|,|!|/|//|_|-|<|>|[|]|\\|\"|#|$|+|~|€|«|x|y|Zz|\x00|\x1f|\ufffd|𝒳|𐐀|𠀀", "|")

// made returns a random text of fragments.
func made(random *rand.Rand, n int) string {
	var b strings.Builder
	for range random.IntN(n) + 1 {
		f := fragments[random.IntN(len(fragments))]
		for range 1 + random.IntN(2)*random.IntN(4) {
			b.WriteString(f)
		}
	}
	return b.String()
}

// regexp2 is an independent implementation of all of .NET's regular expressions. It is slow.
func TestPatternsMatchWhatAnotherEngineMatches(t *testing.T) {
	for name, source := range published {
		p, err := compilePattern(source)
		if err != nil {
			t.Fatal(err)
		}
		other := regexp2.MustCompile(source, regexp2.None)
		other.MatchTimeout = time.Minute
		random := rand.New(rand.NewPCG(7, 7))
		for range 3000 {
			text := made(random, 12)
			if strings.Contains(text, "ſ") && strings.Contains(source, "(?i") {
				text = strings.ReplaceAll(text, "ſ", "s") // .NET does not fold ſ to s, as Unicode does
			}
			var got, want []string
			for at := 0; at < len(text); {
				start, end := findIn(p, text, at)
				if end > start {
					got = append(got, text[start:end])
				}
				at = end
			}
			for m, err := other.FindStringMatch(text); m != nil || err != nil; m, err = other.FindNextMatch(m) {
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, m.String())
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s: %q\n got %q\nwant %q", name, text, got, want)
			}
		}
	}
}

func TestCaseFoldsAsUnicodeHasIt(t *testing.T) {
	p, err := compilePattern(`(?i:'s|'ll)`)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"'s", "'S", "'ſ", "'LL", "'lL"} {
		if start, end := findIn(p, text, 0); start != 0 || end != len(text) {
			t.Errorf("%q: matched from %d to %d, want all of it", text, start, end)
		}
	}
}

// Patterns are refused if they would mean something else here than in the reference.
func TestPatternsThatAreRefused(t *testing.T) {
	for source, want := range map[string]string{
		`\w+`:                             `unsupported pattern "\\w+": \w`,
		`a\b`:                             `unsupported pattern "a\\b": \b`,
		`[^\S]+`:                          `unsupported pattern "[^\\S]+": \S`,
		`[a[bc]]+`:                        `unsupported pattern "[a[bc]]+": "[" inside of brackets`,
		`[a-z&&[^b]]+`:                    `unsupported pattern "[a-z&&[^b]]+": "&" inside of brackets`,
		`a++`:                             "unsupported pattern \"a++\": error parsing regexp: invalid nested repetition operator: `++`",
		`a+?b`:                            `unsupported pattern "a+?b": a+? is not greedy`,
		`(?:ab)+`:                         `unsupported pattern "(?:ab)+": want a character or a class, got ab`,
		`(?<=a)b`:                         "unsupported pattern \"(?<=a)b\": error parsing regexp: invalid named capture: `(?<=a)b`",
		`^a`:                              `unsupported pattern "^a": want a character or a class, got \A`,
		`a*`:                              `unsupported pattern "a*": it matches nothing at all`,
		strings.Repeat("(?:ab|cd)", 10):   `unsupported pattern "` + strings.Repeat("(?:ab|cd)", 10) + `": want at most 1000 ways through its alternatives, got more`,
		`[a`:                              "unsupported pattern \"[a\": error parsing regexp: missing closing ]: `[a`",
		strings.Repeat("a", maxPattern+1): "want a pattern of at most 8192 bytes, got 8193",
	} {
		if _, err := compilePattern(source); err == nil || err.Error() != want {
			t.Errorf("%.20q: got error\n%v, want\n%s", source, err, want)
		}
	}
}

func findIn(p *pattern, text string, at int) (start, end int) {
	search := 1 << 20
	return p.find([]byte(text), at, &search)
}
