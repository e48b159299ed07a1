package dataset

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/token"
	"replayd/internal/trace"
)

// write creates a file in a new directory and makes that directory the current one, so that errors show a short path.
func write(t testing.TB, name, content string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func open(t testing.TB, format Format, content string, o Options) *Set {
	t.Helper()
	s, err := Open(t.Context(), format, write(t, "set", content), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tokenizer returns a small tokenizer of tiktoken's kind. Its tokens are all single bytes, a blank with a lower-case
// letter, and pairs of lower-case letters.
func tokenizer(t testing.TB) *token.Tokenizer {
	t.Helper()
	var b strings.Builder
	rank := 0
	add := func(token string) {
		fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(token)), rank)
		rank++
	}
	for c := range 256 {
		add(string([]byte{byte(c)}))
	}
	for x := 'a'; x <= 'z'; x++ {
		add(" " + string(x))
		for y := 'a'; y <= 'z'; y++ {
			add(string(x) + string(y))
		}
	}
	path := filepath.Join(t.TempDir(), "cl100k_base.tiktoken")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	tok, err := token.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// counted counts a text that can be counted.
func counted(tok *token.Tokenizer, text []byte) int {
	n, err := tok.Count(text)
	if err != nil {
		panic(err)
	}
	return n
}

func TestSingleTurns(t *testing.T) {
	s := open(t, SingleTurn, "\xef\xbb\xbf"+`{"text": "What is <deep> learning?", "output_length": 20}

{"texts": ["Who are you?", "Hello"], "extra": {"top_k": 1}, "session_id": "a"}
{"texts": [{"name": "q", "contents": ["one"]}], "delay": 1.5, "session_id": "a", "timestamp": 5}
{"prompt": "What is the capital of India?", "output_tokens": 10}
{"text": "Be short.", "role": "system", "image": null, "unknown": 1}`, Options{})
	want := []trace.Record{
		{Line: 1, Text: "What is <deep> learning?", OutputTokens: 20},
		{
			Number: 1, Line: 3, Session: "a", Extra: []byte(`{"top_k": 1}`),
			Messages: []byte(`[{"role":"user","content":[{"type":"text","text":"Who are you?"},{"type":"text","text":"Hello"}]}]`),
		},
		{Number: 2, Line: 4, Session: "a", Text: "one", Delay: 1500 * time.Microsecond},
		{Number: 3, Line: 5, Text: "What is the capital of India?", OutputTokens: 10},
		{Number: 4, Line: 6, Messages: []byte(`[{"role":"system","content":"Be short."}]`)},
	}
	if diff := cmp.Diff(want, s.Records()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{
		"set: times are not used, since only a trace has them: of 1 lines", `set: keys that are not used: "unknown" (1 row)`,
	}, s.Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestMultiTurns(t *testing.T) {
	content := `{"session_id": "a", "turns": [{"role": "system", "text": "Be short."}, {"text": "Hi", "answer": "Ho"}, {"text": "And?", "delay": 1000, "output_length": 7}]}
{"turns": [{"text": "one"}, {"texts": ["two", "three"]}]}
{"session_id": "a", "turns": [{"text": "Bye", "extra": {"n": 1}}]}
{"session_id": "b", "turns": [{"role": "system", "text": "alone"}]}`
	const system, one = `[{"role":"system","content":"Be short."},{"role":"user","content":"Hi"}`, `[{"role":"user","content":"one"}`
	const two = system + `,{"role":"assistant","content":"Ho"},{"role":"user","content":"And?"}`
	want := []trace.Record{
		{Line: 1, Session: "a", Messages: []byte(system + "]")},
		{Number: 1, Line: 1, Session: "a", Turn: 1, Delay: time.Second, OutputTokens: 7, Messages: []byte(two + "]")},
		{
			Number: 2, Line: 1, Session: "a", Turn: 2, Extra: []byte(`{"n": 1}`),
			Messages: []byte(two + `,{"role":"assistant","content":""},{"role":"user","content":"Bye"}]`),
		},
		{Number: 3, Line: 2, Session: "line 2", Messages: []byte(one + "]")},
		{
			Number: 4, Line: 2, Session: "line 2", Turn: 1,
			Messages: []byte(one + `,{"role":"assistant","content":""},{"role":"user","content":[{"type":"text","text":"two"},{"type":"text","text":"three"}]}]`),
		},
		{Number: 5, Line: 4, Session: "b", Messages: []byte(`[{"role":"system","content":"alone"}]`)},
	}
	s := open(t, MultiTurn, content, Options{})
	if diff := cmp.Diff(want, s.Records()); diff != "" {
		t.Error(diff)
	}
	if !s.Unanswered {
		t.Error("answers are missing, and the set does not say so")
	}

	tok := tokenizer(t)
	s = open(t, MultiTurn, `{"turns": [{"text": "one", "answer": "four"}, {"text": "two", "answer": "five", "output_length": 9}]}`, Options{Tokenizer: tok})
	if s.Unanswered || s.Records()[0].OutputTokens != counted(tok, []byte("four")) || s.Records()[1].OutputTokens != 9 {
		t.Errorf("got %v, want the answer's tokens, and what the file says", s.Records())
	}
}

func TestReadingEndsWithTheLastRow(t *testing.T) {
	for _, c := range []struct {
		format  Format
		content string
		options Options
		want    int
	}{
		{SingleTurn, `{"text":"a"}` + "\n" + `{"text":"b"}` + "\noops", Options{Most: 2}, 2},
		{MultiTurn, `{"turns":[{"text":"a"}]}` + "\n" + `{"turns":[{"text":"b"},{"text":"c"}]}` + "\noops", Options{Most: 2}, 3},
		{ShareGPT, `[{"conversations":[{"value":"a"},{"value":"b"}]},{"oops`, Options{Most: 1}, 1},
		{ShareGPT, conversations, Options{Most: 2}, 2},
	} {
		s := open(t, c.format, c.content, c.options)
		if got := len(s.Records()); got != c.want {
			t.Errorf("%s: got %d rows, want %d", c.format, got, c.want)
		}
		if all := sha256.Sum256([]byte(c.content)); s.SHA256() != hex.EncodeToString(all[:]) {
			t.Errorf("%s: the hash is not that of the whole file", c.format)
		}
	}
}

func TestRandomPool(t *testing.T) {
	write(t, "queries", `{"text": "a"}`+"\n"+`{"text": "b", "output_length": 5}`+"\n"+`{"text": "c"}`)
	if err := os.Mkdir("pool", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"1": `{"text": "q"}` + "\n" + `{"text": "r"}`, "2": `{"texts": ["p"], "extra": {"n": 1}}`} {
		if err := os.WriteFile(filepath.Join("pool", name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	of := func(path string, o Options) []trace.Record {
		t.Helper()
		s, err := Open(t.Context(), RandomPool, path, o)
		if err != nil {
			t.Fatal(err)
		}
		return s.Records()
	}
	rows, seen := of("queries", Options{Draws: 3000}), map[string]int{}
	for _, r := range rows {
		seen[r.Text]++
		if (r.OutputTokens == 5) != (r.Text == "b") {
			t.Fatalf("got %v", r)
		}
	}
	for _, text := range []string{"a", "b", "c"} {
		if n := seen[text]; n < 900 || n > 1100 { // 4 standard deviations of 3000 draws with probability 1/3
			t.Errorf("%s was drawn %d times of 3000", text, n)
		}
	}
	if !cmp.Equal(rows[:100], of("queries", Options{})) {
		t.Error("the first hundred rows depend on how many there are")
	}
	if cmp.Equal(rows, of("queries", Options{Draws: 3000, Seed: 1})) {
		t.Error("two seeds draw the same rows")
	}
	for _, r := range of("pool", Options{}) {
		var m []struct{ Content []struct{ Text string } }
		if err := json.Unmarshal(r.Messages, &m); err != nil || len(m[0].Content) != 2 || m[0].Content[1].Text != "p" || string(r.Extra) != `{"n": 1}` {
			t.Fatalf("got %s, want a text of each file", r.Messages)
		}
	}
}

func TestBundled(t *testing.T) {
	s, err := Open(t.Context(), Bundled, "", Options{Tokenizer: tokenizer(t)})
	if err != nil {
		t.Fatal(err)
	}
	conversations, prompts := map[string]int{}, map[string]bool{}
	for _, r := range s.Records() {
		if r.OutputTokens < 1 {
			t.Errorf("line %d: no length of the answer", r.Line)
		}
		if r.Session != "" {
			conversations[r.Session]++
			continue
		}
		if r.Text == "" || prompts[r.Text] {
			t.Errorf("line %d: %q is empty or stands twice", r.Line, r.Text)
		}
		prompts[r.Text] = true
	}
	if n := len(prompts); n < 60 || n > 100 {
		t.Errorf("got %d prompts, want 60 to 100", n)
	}
	for session, turns := range conversations {
		if turns < 3 || turns > 5 {
			t.Errorf("%s: got %d turns, want 3 to 5", session, turns)
		}
	}
	if len(conversations) < 5 || s.Unanswered || s.Warnings != nil {
		t.Errorf("got %d conversations, unanswered %v, warnings %q", len(conversations), s.Unanswered, s.Warnings)
	}
	if len(s.SHA256()) != 64 || s.SHA256() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" {
		t.Errorf("got the hash %s", s.SHA256())
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]Format{"sharegpt": ShareGPT, "custom": SingleTurn, "bundled": Bundled, "random_pool": RandomPool} {
		if got, err := Named(name); got != want || err != nil {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	// Named has an answer for every name that vllm bench serve accepts.
	for _, name := range strings.Fields("burstgpt sonnet random random-mm random-rerank hf custom_audio custom_image prefix_repetition spec_bench speed_bench timed_trace") {
		if _, err := Named(name); err == nil || !strings.HasPrefix(err.Error(), "dataset "+name+": ") {
			t.Errorf("%s: got %v, want why not", name, err)
		}
	}
	if _, err := Named("x"); err == nil || err.Error() != `dataset: want sharegpt, custom, single_turn, multi_turn, random_pool or bundled, got "x"` {
		t.Errorf("got %v", err)
	}
}
