package openai

import (
	"replayd/internal/measure"
	"replayd/internal/openai/internal/chunk"
)

// told takes the token counts of the chunk that was read last: the final ones over those of single chunks, and the server's
// usage over llama.cpp's timings.
func (x *exchange) told(u *measure.Usage) {
	c := &x.chunk
	switch {
	case c.Usage.Set && (c.Bare || x.answer.finished):
		*u = usageOf(c.Usage, measure.UsageFinal)
	case c.Usage.Set && u.Source != measure.UsageFinal:
		*u = usageOf(c.Usage, measure.UsageChunks)
	case c.Timings.Set && (u.Source == "" || u.Source == measure.UsageTimings):
		*u = usageOf(c.Timings, measure.UsageTimings)
	}
	u.Opening = min(x.answer.opening, u.Output)
}

// usageOf is the usage by counts. Cached tokens are bounded by the prompt, and reasoning tokens by the output.
func usageOf(c chunk.Counts, s measure.UsageSource) measure.Usage {
	return measure.Usage{
		Prompt: c.Prompt, Output: c.Output, Cached: min(c.Cached, c.Prompt), Reasoning: min(c.Reasoning, c.Output),
		CacheTold: c.CacheTold, Source: s,
	}
}

// settleUsage counts where the server counted nothing: the texts, if there is a tokenizer and all texts were kept, else chunks.
func (x *exchange) settleUsage() {
	chunks := len(x.req.Timeline.Chunks)
	if chunks == 0 || x.req.Usage.Source != "" {
		return
	}
	x.req.Usage = measure.Usage{Output: chunks, Source: measure.UsageCounted}
	if x.hooks.Count == nil || x.texts.Cut {
		return
	}
	count := func(text []byte) int {
		if len(text) == 0 {
			return 0
		}
		return x.hooks.Count(text)
	}
	reasoning := count(x.texts.Reasoning)
	if n := count(x.texts.Content) + reasoning + count(x.texts.Arguments); n > 0 { // else they were token ids
		x.req.Usage = measure.Usage{Output: n, Reasoning: reasoning, Source: measure.UsageText}
	}
}
