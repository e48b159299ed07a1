package openai

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"replayd/internal/measure"
)

// maxText bounds a text that is kept: about a million tokens.
const maxText = 4 << 20

// usualBytes is what a buffer may keep from one answer to the next.
const usualBytes = 64 << 10

// emptied is b for the next answer, and lets go of what only a rare one needed.
func emptied(b []byte) []byte {
	if cap(b) > usualBytes {
		return nil
	}
	return b[:0]
}

// keep collects the texts of a chunk.
func (l *Lane) keep(req *measure.Request) {
	s := &l.chunk.said
	req.Text, req.TextCut = appendText(req.Text, s.content, req.TextCut)
	l.answer.cut = l.answer.cut || req.TextCut
	l.reasoning, l.answer.cut = appendText(l.reasoning, s.reasoning, l.answer.cut)
	l.arguments, l.answer.cut = appendText(l.arguments, s.arguments, l.answer.cut)
}

// appendText appends what a JSON string says, up to maxText in all: cut is that something was left out, and then nothing
// more is taken.
func appendText(dst []byte, t text, cut bool) ([]byte, bool) {
	if cut || !t.some() {
		return dst, cut
	}
	said := []byte(t[1 : len(t)-1])
	if bytes.IndexByte(said, '\\') >= 0 || !utf8.Valid(said) {
		var s string
		_ = json.Unmarshal(t, &s) // the walker has passed it
		said = []byte(s)
	}
	if room := maxText - len(dst); len(said) > room {
		for room > 0 && !utf8.RuneStart(said[room]) {
			room--
		}
		said, cut = said[:room], true
	}
	return append(dst, said...), cut
}

// settleUsage counts where the server counted nothing: the texts, if somebody can and they are all there, else chunks.
func (l *Lane) settleUsage(req *measure.Request) {
	chunks := len(req.Timeline.Chunks)
	if chunks == 0 || req.Usage.Source != "" {
		return
	}
	req.Usage = measure.Usage{Output: chunks, Source: measure.UsageCounted}
	if l.hooks.Count == nil || l.answer.cut {
		return
	}
	count := func(text []byte) int {
		if len(text) == 0 {
			return 0
		}
		return l.hooks.Count(text)
	}
	reasoning := count(l.reasoning)
	if n := count(req.Text) + reasoning + count(l.arguments); n > 0 { // else they were token ids
		req.Usage = measure.Usage{Output: n, Reasoning: reasoning, Source: measure.UsageText}
	}
}
