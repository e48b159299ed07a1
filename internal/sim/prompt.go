package sim

import (
	"encoding/binary"
	"hash/maphash"
)

// prompt counts tokens and keeps a key for each whole block. A key is a hash of everything from the start of the prompt
// to the end of the block, so two prompts share a key exactly if they are equal up to there.
type prompt struct {
	hash   maphash.Hash
	block  int // tokens in a block
	tokens int
	keys   []uint64
}

// Separators between the parts of a prompt. None of them occurs in UTF-8.
const (
	markTemplate = 0xFD // one token of the chat template
	markText     = 0xFE // a text begins
	markID       = 0xFF // a token id follows, four bytes
)

func newPrompt(seed maphash.Seed, block int) *prompt {
	p := &prompt{block: block}
	p.hash.SetSeed(seed)
	return p
}

// salt separates the prompt from prompts with another salt.
func (p *prompt) salt(s string) { _, _ = p.hash.WriteString(s) }

func (p *prompt) template(tokens int) {
	for range tokens {
		_ = p.hash.WriteByte(markTemplate)
		p.token()
	}
}

// words adds a text: a token is a run of bytes other than ASCII white space, with the white space before it.
func (p *prompt) words(text []byte) {
	_ = p.hash.WriteByte(markText)
	hashed, inside := 0, false
	for i, b := range text {
		space := b == ' ' || b >= '\t' && b <= '\r'
		if space && inside && p.ends() {
			_, _ = p.hash.Write(text[hashed:i])
			hashed = i
			p.keys = append(p.keys, p.hash.Sum64())
		}
		inside = !space
	}
	_, _ = p.hash.Write(text[hashed:])
	if inside {
		p.token()
	}
}

func (p *prompt) id(n uint32) {
	var b [5]byte
	b[0] = markID
	binary.LittleEndian.PutUint32(b[1:], n)
	_, _ = p.hash.Write(b[:])
	p.token()
}

// token counts one token whose bytes are all written.
func (p *prompt) token() {
	if p.ends() {
		p.keys = append(p.keys, p.hash.Sum64())
	}
}

// ends counts one token and reports whether a block ends with it.
func (p *prompt) ends() bool {
	p.tokens++
	return p.tokens%p.block == 0
}
