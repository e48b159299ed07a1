package replay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/internal/openai"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// talk returns the messages of a request as "role: text", and its prompt.
func talk(t *testing.T, body []byte) (said []string) {
	t.Helper()
	var m struct {
		Messages []struct{ Role, Content string }
		Prompt   string
	}
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatal(err)
	}
	for _, m := range m.Messages {
		said = append(said, m.Role+": "+m.Content)
	}
	if m.Prompt != "" {
		said = append(said, m.Prompt)
	}
	return said
}

// With History, later turns of a session contain the server's real answers in place of the recorded ones. A row without
// a session stays unchanged.
func TestCarryMessages(t *testing.T) {
	row := func(session, messages string) trace.Record {
		return trace.Record{Session: session, Messages: json.RawMessage(messages)}
	}
	const tool = `{"role":"assistant","content":null,"tool_calls":[{"id":"1"}]}`
	src := []trace.Record{
		row("s", `[{"role":"system","content":"be"},{"role":"assistant","content":"of old"},{"role":"user","content":"a"}]`),
		row("s", `[{"role":"system","content":"be"},{"role":"assistant","content":"of old"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]`),
		row("s", `[{"role":"assistant","content":"of old"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"},`+tool+`,{"role":"tool","content":"d"}]`),
		row("", `[{"role":"assistant","content":"alone"}]`),
	}
	for _, o := range []schedule.Options{once, closedOnce} {
		for carried, says := range map[bool][2]string{true: {`w/0/0 "x" `, "w/0/1"}, false: {"b", ""}} {
			t.Run(fmt.Sprint(o.Arrival, carried), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := &fake{api: openai.Chat, ttft: time.Second}
					f.says = func(id string) string {
						return map[string]string{"w/0/0": `w/0/0 "x" `, "w/0/1": "w/0/1"}[id] + map[bool]string{true: "?"}[id != "w/0/0" && id != "w/0/1"]
					}
					b := newBench(t, source0(slices.Clone(src)...), o, f, func(w *Workload) { w.History = carried })
					b.run(t, t.Context(), t.Context())
					want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 4})
					first := says[0]
					if carried {
						first = strings.Repeat(first, 3) // one per chunk of the answer
					}
					want(t, "first turn", talk(t, f.bodies["w/0/0"]), []string{"system: be", "assistant: of old", "user: a"})
					want(t, "second turn", talk(t, f.bodies["w/0/1"]), []string{"system: be", "assistant: of old", "user: a", "assistant: " + first, "user: c"})
					want(t, "third turn", talk(t, f.bodies["w/0/2"]), []string{"assistant: of old", "user: a", "assistant: " + first, "user: c", "assistant: ", "tool: d"})
					want(t, "no turn", talk(t, f.bodies["w/0/3"]), []string{"assistant: alone"})
					if !strings.Contains(string(f.bodies["w/0/2"]), "tool_calls") {
						t.Error("want the call of a tool kept")
					}
					want(t, "bytes held at the end", b.d.Reserved(), 0)
				})
			})
		}
	}
}

// Synthesized sessions carry the server's answers too: as messages in chat, concatenated in completions. An assistant
// part without a real answer keeps its synthesized text.
func TestCarryParts(t *testing.T) {
	for _, api := range []openai.API{openai.Chat, openai.Completions} {
		t.Run(string(api), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				part := func(role string, id uint64) trace.Part { return trace.Part{Role: role, ID: id, Tokens: 2} }
				history := []trace.Part{part("user", 1), part("assistant", 2), part("user", 3), part("assistant", 4), part("user", 5)}
				// The first turn has a history that was never sent.
				src := source0(
					trace.Record{Session: "s", Turn: 1, InputTokens: 6, OutputTokens: 3, Parts: history[:3]},
					trace.Record{Session: "s", Turn: 2, InputTokens: 10, OutputTokens: 3, Parts: history},
				)
				f := &fake{api: api, says: func(string) string { return "Said" }}
				b := newBench(t, src, once, f, func(w *Workload) { w.History = true })
				b.run(t, t.Context(), t.Context())
				want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 2})
				first, second := talk(t, f.bodies["w/0/0"]), talk(t, f.bodies["w/0/1"])
				if api == openai.Completions {
					want(t, "words", len(strings.Fields(first[0])), 6)
					if !strings.HasPrefix(second[0], first[0]+" SaidSaidSaid ") || len(strings.Fields(second[0])) != 9 {
						t.Errorf("want the first turn, the answer and a message: %q, then %q", first, second)
					}
					return
				}
				want(t, "messages", len(first), 3)
				want(t, "the same at first", second[:3], first)
				want(t, "the answer", second[3], "assistant: SaidSaidSaid")
				want(t, "messages", len(second), 5)
			})
		})
	}
}

// The last carried answer replaces the text of the last assistant message, and so on backwards. A nil answer leaves the
// recorded text.
func TestWhatIsCarried(t *testing.T) {
	messages := json.RawMessage(`[{"role":"assistant","content":"1"},{"role":"assistant","content":"2"},{"role":"assistant","content":"3"},7]`)
	want(t, "messages", string(answered(messages, [][]byte{[]byte("a"), nil})), `[{"role":"assistant","content":"1"},{"role":"assistant","content":"a"},{"role":"assistant","content":"3"},7]`)
	want(t, "no list", string(answered(json.RawMessage(`{}`), [][]byte{[]byte("a")})), `{}`)
	want(t, "more answers than messages", string(answered(json.RawMessage(`[{"role":"assistant"}]`), [][]byte{[]byte("a"), []byte("b")})), `[{"role":"assistant","content":"b"}]`)
	want(t, "more answers than parts", fmt.Sprintf("%q", align([]trace.Part{{Role: assistant}}, [][]byte{[]byte("a"), []byte("b")})), `["b"]`)
}

// An answer that is not streamed is one chunk and has no first token. The record has its text if Keep is set.
func TestWhole(t *testing.T) {
	for _, keep := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{ttft: time.Second, says: func(string) string { return "all of it" }}
			b := newBench(t, rows(3), closedOnce, f, func(w *Workload) { w.Whole, w.Keep = true, keep })
			b.run(t, t.Context(), t.Context())
			want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 3})
			for _, r := range b.kept.all {
				_, ttft := r.TTFT()
				e2e, _ := r.E2E()
				want(t, r.ID+" has a first token", ttft, false)
				want(t, r.ID+" e2e", e2e, time.Second)
				want(t, r.ID+" text", string(r.Text), map[bool]string{true: "all of it"}[keep])
			}
		})
	}
}
