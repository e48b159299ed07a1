package openai

import "replayd/internal/measure"

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

// grown is b with room for n more bytes, up to most in all. It doubles, so that little is left behind for the garbage
// collector: append grows large slices by a quarter at a time.
func grown(b []byte, n, most int) []byte {
	if len(b)+n <= cap(b) || len(b)+n > most {
		return b
	}
	larger := make([]byte, len(b), min(max(2*cap(b), len(b)+n), most))
	copy(larger, b)
	return larger
}

// keep collects the texts of a chunk.
func (l *Lane) keep(req *measure.Request) {
	c := &l.chunk
	if c.several == nil {
		l.say(c.said, req)
		return
	}
	w := walker{b: c.several}
	w.array(func() bool {
		var ch choice
		ok := w.choice(&ch, c.form.whole)
		l.say(ch.said(), req)
		return ok
	})
}

// say collects the texts of a choice.
func (l *Lane) say(s said, req *measure.Request) {
	req.Text, req.TextCut = appendText(req.Text, s.content, req.TextCut)
	l.answer.cut = l.answer.cut || req.TextCut
	l.reasoning, l.answer.cut = appendText(l.reasoning, s.reasoning, l.answer.cut)
	if len(s.calls) == 0 {
		return
	}
	w := walker{b: s.calls}
	w.eachCall(func(arguments value) {
		l.arguments, l.answer.cut = appendArguments(l.arguments, arguments, l.answer.cut)
	})
}

// appendText appends what a value says, up to maxText in all: cut is that something was left out, and then nothing more is
// taken.
func appendText(dst []byte, v value, cut bool) ([]byte, bool) {
	if len(v) > 0 && v[0] == '"' { // as nearly all do
		return appendString(dst, v, cut)
	}
	v.texts(func(text value) { dst, cut = appendString(dst, text, cut) })
	return dst, cut
}

func appendString(dst []byte, text value, cut bool) ([]byte, bool) {
	if cut {
		return dst, cut
	}
	return appendUnquoted(dst, text[1:len(text)-1], maxText)
}

// appendArguments is appendText, for arguments that may be an object which was not put into a string.
func appendArguments(dst []byte, v value, cut bool) ([]byte, bool) {
	if len(v) == 0 || v[0] != '{' {
		return appendText(dst, v, cut)
	}
	if cut || len(v) > maxText-len(dst) {
		return dst, true
	}
	return append(dst, v...), false
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
