package token

import (
	"bytes"

	"golang.org/x/text/unicode/norm"
)

// A normalization is one step of what is done to a text before it is taken apart. Exactly one of its parts is set.
type normalization struct {
	form    *norm.Form
	prepend string   // in front of a text that is not empty
	old     string   // to be replaced by new
	pattern *pattern // to be replaced by new
	new     string
}

// normalize applies steps to a text. It gives the text itself, or one in a buffer of spare. A continued text is the rest of
// one whose beginning is known: nothing is put in front of it.
func normalize(steps []normalization, text []byte, spare *[2][]byte, continued bool) []byte {
	free := 0 // the buffer that text is not in
	for i := range steps {
		s, out := &steps[i], spare[free][:0]
		switch {
		case s.form != nil:
			if s.form.IsNormal(text) {
				continue
			}
			out = s.form.Append(out, text...)
		case s.prepend != "":
			if continued || len(text) == 0 {
				continue
			}
			out = append(append(out, s.prepend...), text...)
		case s.pattern != nil:
			for at := 0; at < len(text); {
				start, end := s.pattern.find(text, at)
				out = append(out, text[at:start]...)
				if end > start {
					out = append(out, s.new...)
				}
				at = end
			}
		default:
			if !bytes.Contains(text, []byte(s.old)) {
				continue
			}
			for {
				before, after, found := bytes.Cut(text, []byte(s.old))
				out = append(out, before...)
				if !found {
					break
				}
				out = append(out, s.new...)
				text = after
			}
		}
		spare[free], text, free = out, out, 1-free
	}
	return text
}
