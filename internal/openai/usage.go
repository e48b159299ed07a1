package openai

import (
	"replayd/internal/measure"
	"replayd/internal/openai/internal/chunk"
)

// A tally has the token counts that a server gave in the course of an answer.
type tally struct {
	usage   largest
	source  measure.UsageSource // of usage; "": none came
	timings largest             // llama.cpp's
	// output tokens of the first content chunk, if the server was asked for usage with each chunk
	opening int
}

// largest has the largest counts of one kind that came.
type largest struct {
	chunk.Counts
	fell bool // a later one was smaller
}

func (l *largest) take(later chunk.Counts) {
	merged, fell := l.Merge(later)
	l.Counts, l.fell = merged, l.fell || fell
}

// note takes the counts of a chunk. final is set at the end of an answer.
func (t *tally) note(c *chunk.Chunk, final bool) {
	if c.Timings.Set {
		t.timings.take(c.Timings)
	}
	if !c.Usage.Set {
		return
	}
	t.usage.take(c.Usage)
	if t.source == "" {
		t.source = measure.UsageChunks
	}
	if final {
		t.source = measure.UsageFinal
	}
}

// reconcile makes a usage of a server's counts, which may be partial or impossible. known is false if they do not say
// how many output tokens there were. content says that some came.
func reconcile(c largest, content bool) (u measure.Usage, known bool) {
	u = measure.Usage{
		Prompt: c.Prompt, Output: c.Output, Cached: c.Cached, Reasoning: c.Reasoning, CacheReported: c.CacheReported,
	}
	if c.fell {
		u.Rules = measure.KeptLarger
	}
	rest := -1 // of the total, without the prompt
	if c.HasTotal && c.HasPrompt && c.Prompt > 0 {
		rest = c.Total - c.Prompt
	}
	known = c.HasOutput && (c.Output > 0 || !content)
	switch {
	case !known && rest > 0:
		u.Output, known = rest, true
		u.Rules |= measure.TotalMinusPrompt
	case c.Reasoning > 0 && (c.Reasoning > c.Output && rest != c.Output || rest == c.Output+c.Reasoning):
		u.Output, known = c.Output+c.Reasoning, true
		u.Rules |= measure.ReasoningBeside
	case !known:
		u.Output = 0
		u.Rules |= measure.NoOutput
	case rest >= 0 && rest != c.Output:
		u.Rules |= measure.TotalDiffers
	}
	if u.Prompt == 0 && c.HasTotal && known && c.Total > u.Output {
		u.Prompt = c.Total - u.Output
		u.Rules |= measure.TotalMinusOutput
	}
	if u.Cached > u.Prompt || known && u.Reasoning > u.Output {
		u.Rules |= measure.Clipped
	}
	u.Cached, u.Reasoning = min(u.Cached, u.Prompt), min(u.Reasoning, u.Output)
	return u, known
}

// settleUsage sets the usage of an answer that is over: the server's, else llama.cpp's timings, else the tokens of the
// texts, if there is a tokenizer and all texts were kept, else the number of chunks.
func (x *exchange) settleUsage() {
	t, chunks := &x.answer.tally, len(x.req.Timeline.Chunks)
	if t.usage.Set {
		u, known := reconcile(t.usage, chunks > 0)
		x.req.Usage = u
		if known {
			x.req.Usage.Source = t.source
		}
	}
	if x.req.Usage.Source == "" && t.timings.Set {
		if u, known := reconcile(t.timings, chunks > 0); known {
			u.Rules |= x.req.Usage.Rules
			u.Source = measure.UsageTimings
			x.req.Usage = u
		}
	}
	if x.req.Usage.Source == "" && chunks > 0 {
		x.count(&x.req.Usage, chunks)
	}
	x.req.Usage.Opening = min(t.opening, x.req.Usage.Output)
}

// count counts the output, where the server did not.
func (x *exchange) count(u *measure.Usage, chunks int) {
	u.Output, u.Reasoning, u.Source = chunks, 0, measure.UsageCounted
	if x.hooks.Count == nil || x.texts.Cut {
		return
	}
	var tokens [3]int
	all := 0
	for i, text := range [][]byte{x.texts.Content, x.texts.Reasoning, x.texts.Calls} {
		if len(text) == 0 {
			continue
		}
		n, err := x.hooks.Count(text)
		if err != nil {
			return
		}
		tokens[i] = n
		all += n
	}
	if all > 0 { // else they were token ids
		u.Output, u.Reasoning, u.Source = all, tokens[1], measure.UsageText
	}
}
