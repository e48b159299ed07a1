package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"hash/maphash"
	"math"
	"slices"
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

// The fast path refuses and counts the same as encoding/json. Keys do not depend on lifting.
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
		plain, plainErr := parse(raw, a, o, testSeed, math.MaxInt)
		for _, from := range []int{50, liftBytes} {
			got, err := parse(raw, a, o, testSeed, from)
			if (err == nil) != (plainErr == nil) {
				t.Fatalf("lifted from %d: %v; not lifted: %v", from, err, plainErr)
			}
			if err != nil {
				if bad := new(refusal); !errors.As(err, &bad) {
					t.Fatalf("%v is no refusal", err)
				}
				continue
			}
			if got.tokens != plain.tokens || len(got.keys) != got.tokens/o.BlockTokens {
				t.Fatalf("lifted from %d: %d tokens, %d keys; not lifted: %d", from, got.tokens, len(got.keys), plain.tokens)
			}
			if bytes.ContainsAny(raw, `\`) || !bytes.Equal(raw, bytes.ToValidUTF8(raw, nil)) {
				continue // encoding/json replaces bad UTF-8, so the text is another
			}
			if !slices.Equal(got.keys, plain.keys) {
				t.Fatalf("lifted from %d: other keys", from)
			}
		}
		want, ok := reference(raw, a, o.TemplateTokens)
		if plainErr == nil && (!ok || plain.tokens != want) {
			t.Fatalf("%d tokens, want %d, %v", plain.tokens, want, ok)
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
		got, err := parse([]byte(c.body), c.api, Defaults(), testSeed, liftBytes)
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

// A lifted value is still the value.
func TestLongNames(t *testing.T) {
	o := Defaults()
	o.Model = strings.Repeat("m", 100)
	salted := func(salt string) []uint64 {
		r, err := parse([]byte(`{"model":"`+o.Model+`","cache_salt":"`+salt+`","prompt":"`+text("a", 16)+`"}`), completions, o, testSeed, liftBytes)
		if err != nil {
			t.Fatal(err)
		}
		return r.keys
	}
	long := strings.Repeat("s", 100)
	if a, b, c := salted(long+"1"), salted(long+"2"), salted(long+"1"); slices.Equal(a, b) || !slices.Equal(a, c) {
		t.Error("keys do not follow the salt")
	}
}

func BenchmarkParse(b *testing.B) {
	words := []byte(`{"model":"sim","messages":[{"role":"user","content":"` + strings.Repeat("wording ", 12000) + `"}],"stream":true,"max_tokens":300,"ignore_eos":true}`)
	ids := []byte(`{"model":"sim","prompt":[` + strings.Repeat("12345,", 12000) + `1],"stream":true,"max_tokens":300,"ignore_eos":true}`)
	for _, c := range []struct {
		name string
		api  *api
		body []byte
		from int
	}{
		{"text", chat, words, liftBytes},
		{"ids", completions, ids, liftBytes},
		{"text by encoding json alone", chat, words, math.MaxInt},
		{"ids by encoding json alone", completions, ids, math.MaxInt},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := parse(c.body, c.api, Defaults(), testSeed, c.from); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
