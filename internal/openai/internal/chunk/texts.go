package chunk

// MaxText bounds a text that is kept, in bytes. It is about a million tokens.
const MaxText = 4 << 20

// Texts are the concatenated texts of an answer's chunks. If there are several choices, all contents are in the order of
// arrival.
type Texts struct {
	Content, Reasoning, Arguments []byte

	ContentCut bool // the content was longer than MaxText
	Cut        bool // one of the three texts was longer than MaxText
}

// Add appends the texts of a chunk that was read with Keep.
func (t *Texts) Add(c *Chunk) {
	if c.several == nil {
		t.say(c.said)
		return
	}
	w := scanner{b: c.several}
	w.array(func() bool {
		var ch choice
		ok := w.choice(&ch, c.Form)
		t.say(ch.said())
		return ok
	})
}

// say appends the texts of a choice.
func (t *Texts) say(s said) {
	t.Content, t.ContentCut = appendText(t.Content, s.content, t.ContentCut)
	t.Cut = t.Cut || t.ContentCut
	t.Reasoning, t.Cut = appendText(t.Reasoning, s.reasoning, t.Cut)
	if len(s.calls) == 0 {
		return
	}
	w := scanner{b: s.calls}
	w.eachCall(func(arguments value) {
		t.Arguments, t.Cut = appendArguments(t.Arguments, arguments, t.Cut)
	})
}

// appendText appends the text of a value, up to MaxText bytes in total. cut reports that text was left out; after that,
// nothing more is appended.
func appendText(dst []byte, v value, cut bool) ([]byte, bool) {
	if len(v) > 0 && v[0] == '"' { // the usual case
		return appendString(dst, v, cut)
	}
	v.texts(func(text value) { dst, cut = appendString(dst, text, cut) })
	return dst, cut
}

func appendString(dst []byte, text value, cut bool) ([]byte, bool) {
	if cut {
		return dst, cut
	}
	return appendUnquoted(dst, text[1:len(text)-1], MaxText)
}

// appendArguments is appendText for arguments, which may be a JSON object instead of a string.
func appendArguments(dst []byte, v value, cut bool) ([]byte, bool) {
	if len(v) == 0 || v[0] != '{' {
		return appendText(dst, v, cut)
	}
	if cut || len(v) > MaxText-len(dst) {
		return dst, true
	}
	return append(dst, v...), false
}
