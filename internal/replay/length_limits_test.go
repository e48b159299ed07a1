package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"replayd/internal/dispatch"
	"replayd/internal/measure"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

func countWords(text []byte) (int, error) { return len(bytes.Fields(text)), nil }

func TestLimits(t *testing.T) {
	type lengths struct{ input, output int }
	text := strings.Repeat("word ", 8)
	for name, c := range map[string]struct {
		limits LengthLimits
		count  func([]byte) (int, error)
		row    trace.Record
		want   lengths
		ok     bool
		cut    bool
	}{
		"no limit": {
			LengthLimits{OverLimit: Filter},
			nil,
			trace.Record{InputTokens: 9, OutputTokens: 9},
			lengths{9, 9},
			true, false,
		},
		"at the limit": {
			LengthLimits{OverLimit: Filter, MaxContext: 18},
			nil,
			trace.Record{InputTokens: 9, OutputTokens: 9},
			lengths{9, 9},
			true, false,
		},
		"over it": {
			LengthLimits{OverLimit: Filter, MaxContext: 17},
			nil,
			trace.Record{InputTokens: 9, OutputTokens: 9},
			lengths{9, 9},
			false, false,
		},
		"sent all the same": {
			LengthLimits{OverLimit: Send, MaxContext: 17, MaxInput: 1, MaxOutput: 1},
			nil,
			trace.Record{InputTokens: 9, OutputTokens: 9},
			lengths{9, 9},
			true, false,
		},
		"clipped": {
			LengthLimits{OverLimit: Clip, MaxContext: 15},
			nil,
			trace.Record{InputTokens: 9, OutputTokens: 9},
			lengths{6, 9},
			true, true,
		},
		"no answer that long": {
			LengthLimits{OverLimit: Clip, MaxContext: 5},
			nil,
			trace.Record{InputTokens: 9, OutputTokens: 9},
			lengths{1, 4},
			true, true,
		},
		"any length of answer": {
			LengthLimits{OverLimit: Clip, MaxContext: 5},
			nil,
			trace.Record{InputTokens: 9},
			lengths{4, 0},
			true, true,
		},
		"room for nothing": {
			LengthLimits{OverLimit: Clip, MaxContext: 1},
			nil,
			trace.Record{InputTokens: 9, OutputTokens: 9},
			lengths{9, 9},
			false, false,
		},
		"each side first": {
			LengthLimits{OverLimit: Clip, MaxContext: 9, MaxInput: 6, MaxOutput: 5},
			nil,
			trace.Record{InputTokens: 9, OutputTokens: 9},
			lengths{4, 5},
			true, true,
		},
		"text of unknown size": {
			LengthLimits{OverLimit: Filter, MaxContext: 5},
			nil,
			trace.Record{Text: text},
			lengths{0, 0},
			true, false,
		},
		"text over it": {
			LengthLimits{OverLimit: Filter, MaxContext: 7},
			countWords,
			trace.Record{Text: text},
			lengths{0, 0},
			false, false,
		},
		"text is not clipped": {
			LengthLimits{OverLimit: Clip, MaxInput: 7},
			countWords,
			trace.Record{Text: text},
			lengths{0, 0},
			false, false,
		},
		"but its answer": {
			LengthLimits{OverLimit: Clip, MaxContext: 10},
			countWords,
			trace.Record{Text: text, OutputTokens: 5},
			lengths{0, 2},
			true, true,
		},
		"text without any room": {
			LengthLimits{OverLimit: Clip, MaxContext: 8},
			countWords,
			trace.Record{Text: text, OutputTokens: 5},
			lengths{0, 5},
			false, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			row := &dispatch.Row{Due: schedule.Due{Record: c.row}}
			want(t, "goes", c.limits.limit(row, c.count), c.ok)
			want(t, "lengths", lengths{row.Due.InputTokens, row.Due.OutputTokens}, c.want)
			want(t, "clipped", row.Clipped, c.cut)
		})
	}
}

// shorten takes tokens from the last message first and leaves at least one in each. Other rows that share the messages
// keep theirs.
func TestShortenParts(t *testing.T) {
	parts := []trace.Part{{Tokens: 5}, {Tokens: 3}, {Tokens: 4}}
	for tokens, left := range map[int][]int{12: {5, 3, 4}, 10: {5, 3, 2}, 9: {5, 3, 1}, 8: {5, 2, 1}, 5: {3, 1, 1}, 3: {1, 1, 1}, 1: {1, 1, 1}} {
		rec := trace.Record{InputTokens: 12, Parts: parts}
		shorten(&rec, tokens)
		var got []int
		sum := 0
		for _, p := range rec.Parts {
			got = append(got, p.Tokens)
			sum += p.Tokens
		}
		want(t, fmt.Sprint(tokens), got, left)
		want(t, fmt.Sprint(tokens, " in all"), rec.InputTokens, sum)
	}
	want(t, "shared", parts, []trace.Part{{Tokens: 5}, {Tokens: 3}, {Tokens: 4}})
}

func TestClippedAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clipped atomic.Int64
		b := newBench(t, source(trace.Record{InputTokens: 5}, trace.Record{InputTokens: 9}, trace.Record{InputTokens: 8}), once, &fake{}, func(w *Workload) {
			w.MaxContext, w.OverLimit, w.Clipped = 8, Clip, &clipped
		})
		b.run(t, t.Context(), t.Context())
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 3})
		want(t, "clipped", clipped.Load(), int64(2))
	})
}

// A plan whose rows are all over the limits ends with an error instead of reading forever: at the end of the first loop
// after which at least 4,096 rows were read.
func TestEveryRowIsFiltered(t *testing.T) {
	for n, told := range map[int]int{10_000: 10_000, 3: 4098} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{}
			b := newBench(t, rows(n), closedLoop, f, func(w *Workload) { w.MaxInput = 3 })
			go func() { _ = b.target.Run(t.Context()) }()
			err := b.Run(t.Context(), t.Context())
			want := fmt.Sprintf("workload w: %d rows one after the other are over the length limits "+
				"or ask for several choices", told)
			if err == nil || err.Error() != want {
				t.Errorf("want %q, got %v", want, err)
			}
			b.client.Close()
			f.running.Wait()
		})
	}
}

func TestCountInput(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	for name, c := range map[string]struct {
		row  trace.Record
		want int
	}{
		"text":             {trace.Record{Text: "a b c"}, 3},
		"messages":         {trace.Record{Messages: raw(`[{"role":"user","content":"a b"},{"role":"assistant","content":null},{"role":"user","content":"c"}]`)}, 3},
		"parts of them":    {trace.Record{Messages: raw(`[{"role":"user","content":[{"type":"text","text":"a b"},{"type":"image_url"},{"type":"text","text":"c"}]}]`)}, 3},
		"a payload":        {trace.Record{Payload: raw(`{"messages":[{"content":"a"}]}`)}, 1},
		"its prompt":       {trace.Record{Payload: raw(`{"prompt":"a b"}`)}, 2},
		"its prompts":      {trace.Record{Payload: raw(`{"prompt":["a b","","c"]}`)}, 3},
		"token ids":        {trace.Record{Payload: raw(`{"prompt":[1,2]}`)}, 0},
		"nothing of all":   {trace.Record{Payload: raw(`{"messages":1}`)}, 0},
		"not a payload":    {trace.Record{Payload: raw(`[]`)}, 0},
		"to be made up":    {trace.Record{InputTokens: 5}, 0},
		"an empty message": {trace.Record{Messages: raw(`[{"content":""}]`)}, 0},
	} {
		got, err := countInput(&c.row, c.row.Messages, countWords)
		want(t, name, got, c.want)
		want(t, name, err, nil)
		refused := func([]byte) (int, error) { return 0, io.ErrShortBuffer }
		if _, err := countInput(&c.row, c.row.Messages, refused); (err != nil) != (c.want > 0) {
			t.Errorf("%s: texts that cannot be counted: got %v", name, err)
		}
	}
}

// The record has the tokenizer's count of a text prompt and, if the server sends no usage, of the answer.
func TestCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{uncounted: true, says: func(string) string { return "two words " }}
		b := newBench(t, source0(trace.Record{Text: "a b c"}, trace.Record{InputTokens: 4, OutputTokens: 3}), once, f, func(w *Workload) {
			w.CountInput, w.CountOutput = countWords, countWords
		})
		b.run(t, t.Context(), t.Context())
		for _, r := range b.kept.all {
			want(t, r.ID+" counted", r.CountedInput, map[int]int{0: 3, 1: 0}[r.Row])
			want(t, r.ID+" usage", r.Usage, measure.Usage{Output: 6, Source: measure.UsageText})
		}
	})
}
