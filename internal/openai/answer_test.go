package openai

import (
	"context"
	"strings"
	"testing"
	"time"

	"replayd/internal/measure"
)

// The decoding of a long chunk stops when the deadline has passed or the context has ended. A short chunk is always
// decoded.
func TestDecodingIsStopped(t *testing.T) {
	long := []byte(`{"a":[` + strings.Repeat("{},", longData) + `{}],"choices":[{"text":"a"}]}`)
	l := newClient(t, Target{}).Lane()
	defer l.Close()
	ended, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		ctx   context.Context
		total time.Time
		data  []byte
		late  measure.Outcome
	}{
		"in time":                 {t.Context(), time.Now().Add(time.Hour), long, ""},
		"no limit":                {t.Context(), time.Time{}, long, ""},
		"after timeouts.total":    {t.Context(), time.Now().Add(-1), long, measure.TimeoutTotal},
		"stopped":                 {ended, time.Time{}, long, measure.Aborted},
		"a short one, afterwards": {t.Context(), time.Now().Add(-1), []byte(wholeHello), ""},
	} {
		l.present.total = c.total
		known, late := l.present.find(c.ctx, c.data)
		if known == (late != nil) || late != nil && late.outcome != c.late || late == nil && c.late != "" {
			t.Errorf("%s: want %q, got %v, %v", name, c.late, known, late)
		}
	}
}

// The time to first answer token is that of the first chunk with text or arguments. Token ids alone are of the kind of the text that
// follows.
func TestReasoningIsToldFromTheAnswer(t *testing.T) {
	event := func(member string) string { return `data: {"choices":[{"delta":{` + member + `}}]}` + "\n\n" }
	role, ids := event(`"role":"assistant","content":""`), event(`"token_ids":[1]`)
	thought, vllm := event(`"reasoning_content":"a","content":null`), event(`"reasoning":"a"`)
	text, call := event(`"content":"a"`), event(`"tool_calls":[{"function":{"arguments":"{"}}]`)
	for name, c := range map[string]struct {
		events    []string
		reasoning int
	}{
		"text":                    {[]string{role, text, text}, 0},
		"reasoning, then text":    {[]string{role, thought, vllm, text, text}, 2},
		"reasoning, then a call":  {[]string{thought, event(`"tool_calls":[{"function":{"name":"f","arguments":""}}]`), call}, 1},
		"both at once":            {[]string{thought, event(`"reasoning":"a","content":"b"`), text}, 1},
		"both at once, and first": {[]string{event(`"reasoning":"a","content":"b"`), text}, 0},
		"text, then reasoning":    {[]string{text, thought, text}, 0},
		"reasoning alone":         {[]string{thought, thought}, 2},
		"token ids alone":         {[]string{ids, ids}, 0},
		"ids before text":         {[]string{ids, text}, 0},
		"ids before reasoning":    {[]string{ids, thought, ids, text, ids}, 3},
		"ids after reasoning":     {[]string{thought, ids}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, false, streamHead+chunked(strings.Join(c.events, "")+finish("stop")+done)+bodyEnd, Hooks{}, func(req *measure.Request) {
				if req.Outcome != measure.OK || req.Timeline.ReasoningChunks != c.reasoning {
					t.Errorf("want ok and %d chunks of reasoning, got %s (%s) and %d", c.reasoning, req.Outcome, req.Error, req.Timeline.ReasoningChunks)
				}
				at, defined := req.TTFAT()
				if alone := c.reasoning == len(req.Timeline.Chunks); defined == alone || defined && at != req.Timeline.Chunks[c.reasoning] {
					t.Errorf("TTFAT %v, %v of %v", at, defined, req.Timeline.Chunks)
				}
			})
		})
	}
}
