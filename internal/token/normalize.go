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

// normalize applies steps to a text. It returns the text itself, or a buffer of spare. If the text is continued, its
// beginning is known already: nothing is inserted before it.
func normalize(steps []normalization, text []byte, spare *[2][]byte, continued bool) []byte {
	free := 0 // index of the buffer that does not hold text
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
