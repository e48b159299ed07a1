package sim

import (
	"encoding/json"
	"errors"
	"hash/maphash"
	"math"
	"strings"
	"testing"
)

var testSeed = maphash.MakeSeed()

// reference counts a body's tokens with encoding/json alone, with the values decoded into any. It returns false for a
// body whose prompt must be refused.
func reference(raw []byte, a *api, template int) (tokens int, ok bool) {
	var b struct {
		Messages []struct{ Content any }
		Prompt   any
	}
	if json.Unmarshal(raw, &b) != nil {
		return 0, false
	}
	count := func(s string) int {
		return len(strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\n\v\f\r", r) }))
	}
	if a == chat {
		for _, m := range b.Messages {
			switch c := m.Content.(type) {
			case nil:
			case string:
				tokens += count(c)
			case []any:
				for _, part := range c {
					p, _ := part.(map[string]any)
					kind, text := "", any(nil)
					for k, v := range p { // encoding/json matches names of fields without case
						switch strings.ToLower(k) {
						case "type":
							kind, _ = v.(string)
						case "text":
							text = v
						}
					}
					s, isText := text.(string)
					if kind != "text" || !isText {
						return 0, false
					}
					tokens += count(s)
				}
			default:
				return 0, false
			}
		}
		return tokens + template, len(b.Messages) > 0
	}
	ids := func(v any) (int, bool) {
		list, ok := v.([]any)
		for _, id := range list {
			f, number := id.(float64)
			if !number || f != math.Trunc(f) || f < 0 || f >= 1<<31 {
				return 0, false
			}
		}
		return len(list), ok && len(list) > 0
	}
	one := func(v any) (int, bool) {
		if s, ok := v.(string); ok {
			return count(s), true
		}
		return ids(v)
	}
	tokens, ok = one(b.Prompt)
	if list, isList := b.Prompt.([]any); !ok && isList && len(list) == 1 {
		tokens, ok = one(list[0])
	}
	return tokens, ok && tokens > 0
}

var bodySeeds = []string{
	`{"messages":[{"role":"user","content":"about after always"}]}`,
	`{"messages":[{"content":[{"type":"text","text":"about \n after"}]},{"content":null},{}]}`,
	`{"prompt":"about\u0020after \\ \"always\" "}`,
	`{"prompt":[1, 2 ,3]}`, `{"prompt":[[1,22,333]]}`, `{"prompt":["about after"]}`, `{"prompt":[[1],[2]]}`,
	`{"prompt":[01]}`, `{"prompt":[1,]}`, `{"prompt":[1e1]}`, `{"prompt":[-0]}`,
	`{"prompt":"\u00000","x":"` + strings.Repeat("y", 70) + `"}`,
	`{"prompt":["\u00000"],"x":[` + strings.Repeat("1,", 70) + `1]}`,
	`{"` + strings.Repeat("k", 70) + `":1,"prompt":"` + strings.Repeat("word ", 70) + `"}`,
	`{"prompt":[` + strings.Repeat("1000,", 70) + `1]}`, `{"prompt":[[ ` + strings.Repeat("1000 , ", 70) + `1 ]]}`,
	`{"prompt":["` + strings.Repeat("word  ", 70) + `"]}`,
	`{[` + strings.Repeat("1,", 70) + `1]:2}`, `{"prompt":"` + strings.Repeat("tab\t", 70) + `"}`,
	`{"prompt":"` + strings.Repeat("é\xff\u00a0 ", 70) + `"}`, `{"prompt":"open`, `{"prompt":"open\`, ``, `null`, `[[[[1,[2,`,
	`{"messages":[{"content":"` + strings.Repeat("one two ", 40) + `"},{"content":"` + strings.Repeat(`three\n`, 40) + `"}]}`,
}

// What is accepted has the tokens that encoding/json finds.
func FuzzParse(f *testing.F) {
	for _, s := range bodySeeds {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	o := Defaults()
	o.MaxModelLen = 1 << 24
	f.Fuzz(func(t *testing.T, raw []byte, isChat bool) {
		a := completions
		if isChat {
			a = chat
		}
		got, err := parse(raw, a, o, testSeed)
		if bad := new(refusal); err != nil && !errors.As(err, &bad) {
			t.Fatalf("%v is no refusal", err)
		}
		if err == nil && len(got.keys) != got.tokens/o.BlockTokens {
			t.Fatalf("%d tokens, %d keys", got.tokens, len(got.keys))
		}
		want, ok := reference(raw, a, o.TemplateTokens)
		if err == nil && (!ok || got.tokens != want) {
			t.Fatalf("%d tokens, want %d, %v", got.tokens, want, ok)
		}
	})
}

// The seeds again with explicit results, because the fuzz target lets both sides refuse.
func TestParseCounts(t *testing.T) {
	for _, c := range []struct {
		api  *api
		body string
		want int // 0: refused
	}{
		{chat, bodySeeds[0], 12},
		{chat, bodySeeds[1], 11},
		{completions, bodySeeds[2], 4},
		{completions, bodySeeds[3], 3},
		{completions, bodySeeds[4], 3},
		{completions, bodySeeds[5], 2},
		{completions, bodySeeds[6], 0},
		{completions, bodySeeds[7], 0},
		{completions, bodySeeds[8], 0},
		{completions, bodySeeds[9], 0},
		{completions, bodySeeds[10], 0},
		{completions, bodySeeds[11], 1},
		{completions, bodySeeds[12], 1},
		{completions, bodySeeds[13], 70},
		{completions, bodySeeds[14], 71},
		{completions, bodySeeds[15], 71},
		{completions, bodySeeds[16], 70},
		{completions, bodySeeds[17], 0},
		{completions, bodySeeds[18], 0},
		{completions, bodySeeds[19], 70},
		{completions, bodySeeds[20], 0},
		{completions, bodySeeds[21], 0},
		{completions, bodySeeds[22], 0},
		{completions, bodySeeds[23], 0},
		{chat, bodySeeds[25], 9 + 80 + 40},
	} {
		got, err := parse([]byte(c.body), c.api, Defaults(), testSeed)
		if (err == nil) != (c.want > 0) || err == nil && got.tokens != c.want {
			t.Errorf("%.80s: %d tokens, %v, want %d", c.body, got.tokens, err, c.want)
		}
	}
}

// Keys agree exactly as far as prompts do. A block may end anywhere in a message.
func TestKeys(t *testing.T) {
	keys := func(salt string, texts ...string) []uint64 {
		p := newPrompt(testSeed, 4)
		p.salt(salt)
		for _, text := range texts {
			p.words([]byte(text))
		}
		return p.keys
	}
	base := keys("", "a b c d e f g h i j k l m")
	for _, c := range []struct {
		name string
		keys []uint64
		same int
	}{
		{"itself", keys("", "a b c d e f g h i j k l m"), 3},
		{"shorter", keys("", "a b c d e f g h"), 2},
		{"one word other", keys("", "a b c d e f X h i j k l"), 1},
		{"first word other", keys("", "X b c d e f g h i j k l"), 0},
		{"a longer last word", keys("", "a b c d e f g hh i j k l"), 1},
		{"salted", keys("s", "a b c d e f g h i j k l m"), 0},
		{"next message", keys("", "a b c d e f", "g h i j k l"), 1},
	} {
		same := 0
		for same < min(len(base), len(c.keys)) && base[same] == c.keys[same] {
			same++
		}
		if same != c.same {
			t.Errorf("%s: %d keys in common, want %d", c.name, same, c.same)
		}
	}
}
