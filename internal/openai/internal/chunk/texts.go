package chunk

// MaxText bounds a text that is kept, in bytes. It is about a million tokens.
const MaxText = 4 << 20

// Texts are the concatenated texts of an answer's chunks. If there are several choices, all contents are in the order of
// arrival.
type Texts struct {
	Content, Reasoning []byte
	Calls              []byte // names and arguments of tool calls

	ContentCut bool // the content was longer than MaxText
	Cut        bool // one of the three texts was longer than MaxText
}

// Add appends the texts of a chunk that was read with Keep.
func (t *Texts) Add(c *Chunk) {
	if c.several == nil {
		t.say(&c.kept)
		return
	}
	w := scanner{b: c.several}
	w.array(func() bool {
		var ch choice
		ok := w.choice(&ch, c.Form)
		t.say(&ch)
		return ok
	})
}

// say appends the texts of a choice. Several fields of reasoning are one text: some versions of vLLM, and OpenRouter,
// send it under two names.
func (t *Texts) say(ch *choice) {
	p := &ch.part
	content := p.text
	if !content.says("text", "refusal") {
		content = ch.own
	}
	t.Content, t.ContentCut = appendText(t.Content, content, t.ContentCut, "text", "refusal")
	t.Content, t.ContentCut = appendText(t.Content, p.refusal, t.ContentCut)
	t.Cut = t.Cut || t.ContentCut
	think := func(thought value, keys ...string) (says bool) {
		if says = thought.says(keys...); says {
			t.Reasoning, t.Cut = appendText(t.Reasoning, thought, t.Cut, keys...)
		}
		return says
	}
	said := think(p.thought, "text", "summary") || think(p.reasoning, "text", "summary") ||
		think(p.reasoningText, "text", "summary") || think(p.details, "text", "summary") || think(p.blocks, "thinking")
	if !said {
		p.text.thinking(func(thought value) { think(thought, "text") })
	}
	add := func(c call) {
		t.Calls, t.Cut = appendText(t.Calls, c.name, t.Cut)
		t.Calls, t.Cut = appendArguments(t.Calls, c.arguments, t.Cut)
	}
	(&scanner{b: p.calls}).calls(add)
	var c call
	(&scanner{b: p.function}).call(&c)
	add(c)
}

// appendText appends the texts of a value, up to MaxText bytes in total. cut reports that text was left out; after
// that, nothing more is appended.
func appendText(dst []byte, v value, cut bool, keys ...string) ([]byte, bool) {
	v.texts(func(text value) {
		if !cut {
			dst, cut = appendUnquoted(dst, text[1:len(text)-1], MaxText)
		}
	}, keys...)
	return dst, cut
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
