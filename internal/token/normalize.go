package token

import (
	"bytes"

	"golang.org/x/text/unicode/norm"
)

// A normalization is one step that changes a text before it is split. Exactly one of its fields is set.
type normalization struct {
	form    *norm.Form
	prepend string   // inserted before a text that is not empty
	old     string   // replaced by new
	pattern *pattern // replaced by new
	new     string
}

// normalize applies the tokenizer's steps to a text. It returns the text itself, or a buffer of the walk. If the text is
// continued, its beginning is known already: nothing is inserted before it. Where the walk fails, it returns nothing.
func (w *walk) normalize(text []byte, continued bool) []byte {
	free := 0 // index of the buffer that does not hold text
	for i := range w.t.steps {
		s, out := &w.t.steps[i], w.spare[free][:0]
		switch {
		case s.form != nil:
			if s.form.IsNormal(text) {
				continue
			}
			out = w.form(*s.form, out, text)
		case s.prepend != "":
			if continued || len(text) == 0 {
				continue
			}
			out = append(append(out, s.prepend...), text...)
		case s.pattern != nil:
			for at := 0; at < len(text); {
				start, end := s.pattern.find(text, at, &w.search)
				out = append(out, text[at:start]...)
				if end > start {
					out = append(out, s.new...)
				}
				if at = end; !w.holds(len(out)) {
					break
				}
			}
		default:
			if !bytes.Contains(text, []byte(s.old)) {
				continue
			}
			for w.holds(len(out)) {
				before, after, found := bytes.Cut(text, []byte(s.old))
				out = append(out, before...)
				if !found {
					break
				}
				out = append(out, s.new...)
				text = after
			}
		}
		if w.spare[free] = out; !w.holds(len(out)) {
			return nil
		}
		text, free = out, 1-free
	}
	return text
}

// form appends a text in a form of Unicode. A text that may become too large is appended in parts: Append joins them, as it looks
// at the end of the earlier ones.
func (w *walk) form(f norm.Form, out, text []byte) []byte {
	for len(text) > 0 && w.holds(len(out)) {
		n := runeEnd(text, min(largest, len(text)))
		out = f.Append(out, text[:n]...)
		text = text[n:]
	}
	return out
}

// holds reports whether a normalized text may have this many bytes. If not, the walk has failed.
func (w *walk) holds(bytes int) bool {
	if bytes > w.room {
		return w.fail(errLongText)
	}
	return w.err == nil
}
