// Package synth makes prompts with an exact number of tokens, and synthetic traces. It is a function of its input: the
// same row, seed, salt and overhead give the same bytes on every machine and in every version.
package synth

import (
	"fmt"
	"math"
	"strconv"

	"replayd/internal/token"
	"replayd/internal/trace"
)

// Form is the kind of a prompt's content.
type Form string

// Forms.
const (
	Text   Form = "text"   // words, for chat and completions
	Tokens Form = "tokens" // token ids, for /v1/completions
)

// Options of a Prompter.
type Options struct {
	Words       *token.Words
	Form        Form   // form for which Bytes counts
	Seed        uint64 // replays that must not share prefixes use different seeds
	BlockTokens int    // tokens of a full block; 0 for a trace without blocks

	// Texts, if set, appends about a number of tokens of a dataset's text to dst instead of words, for rows without
	// parts. It is used with form Text only. Several goroutines may call it at once.
	Texts func(dst []byte, r *trace.Record, salt uint64, tokens int) []byte
}

// A Prompter makes the prompts of one trace. It may be used by several goroutines at once.
type Prompter struct{ Options }

// New returns an error for texts of a dataset as token ids. The configuration has checked each option by itself.
func New(o Options) (*Prompter, error) {
	if o.Texts != nil && o.Form == Tokens {
		return nil, fmt.Errorf("form: want %q for texts of a data set, got %q", Text, o.Form)
	}
	return &Prompter{o}, nil
}

// AppendText appends the prompt of a row as words and says how many tokens it has: InputTokens − overhead, and at
// least 1. The salt is Salt.At's; the overhead (≥ 0) is what a chat template adds, and is taken off the tail. Parts
// follow one another, and the last one gives up the overhead but for one token.
//
// The text is made of a-z and single spaces, so that it needs no escaping in JSON. It begins with a word that is one
// token without a leading space, for chat templates trim and SentencePiece puts in a space of its own.
func (p *Prompter) AppendText(dst []byte, r *trace.Record, salt uint64, overhead int) (prompt []byte, tokens int) {
	if p.Texts != nil && len(r.Parts) == 0 {
		tokens = max(1, r.InputTokens-overhead)
		return p.Texts(dst, r, salt, tokens), tokens
	}
	return p.AppendTurns(dst, r, salt, overhead, nil)
}

// appendWords appends a piece. Where it opens a text or a message, its first word is a starter, without a space.
func (p *Prompter) appendWords(dst []byte, c *cut) []byte {
	n := c.tokens
	if c.opens {
		dst = p.Words.AppendStarter(dst, c.stream.below(uint64(p.Words.Starters())))
		n--
	}
	words := uint64(p.Words.Len())
	for range n {
		dst = p.Words.Append(dst, c.stream.below(words))
	}
	return dst
}

// AppendIDs does the same with token ids, as a JSON array: [51234,1023].
func (p *Prompter) AppendIDs(dst []byte, r *trace.Record, salt uint64, overhead int) (prompt []byte, tokens int) {
	low, ids := int64(p.Words.FirstID), uint64(p.Words.LastID-p.Words.FirstID+1)
	open := byte('[')
	for c := p.cut(r, salt, overhead); c.next(); tokens += c.tokens {
		for range c.tokens {
			dst = append(dst, open)
			dst = strconv.AppendInt(dst, low+int64(c.stream.below(ids)), 10)
			open = ','
		}
	}
	return append(dst, ']'), tokens
}

// Bytes is the room that the row's prompt needs in the Prompter's form, before any overhead is taken off. No list of
// ids is longer, and of texts one in 10¹⁰. Messages have their frames in it; answers that
// replace made-up ones, and texts of a data set, may be longer.
func (p *Prompter) Bytes(r *trace.Record) int {
	n := float64(max(1, r.InputTokens))
	if p.Form == Tokens {
		return 6*int(n) + 1 // five digits and a comma each, the two brackets
	}
	// Lengths of words are independent draws with a deviation of 2.4 bytes, and none is over 16: mean + 6.6 deviations.
	mean := float64(p.Words.Bytes()) / float64(p.Words.Len())
	return int(math.Ceil(min(16*n, mean*n+16*math.Sqrt(n)))) + len(`{"role":"assistant","content":""},`)*len(r.Parts)
}

// A cut walks over the pieces of a prompt: each is the beginning of a stream.
type cut struct {
	stream stream
	tokens int        // to take from stream
	opens  bool       // the piece begins the prompt, or a message
	part   trace.Part // whose piece it is, where the row has parts

	p       *Prompter
	row     *trace.Record
	salt    uint64
	at      int // pieces so far; of a row with parts, parts so far
	block   int // of the part, pieces so far
	rest    int // tokens of the part that later pieces will hold
	left    int // tokens that later pieces will hold
	answers int // parts of the assistant so far
}

func (p *Prompter) cut(r *trace.Record, salt uint64, overhead int) cut {
	c := cut{p: p, row: r, salt: salt, left: max(1, r.InputTokens-overhead)}
	if n := len(r.Parts); n > 0 {
		c.left = r.InputTokens - min(overhead, r.Parts[n-1].Tokens-1)
	}
	return c
}

// next moves to the next piece; it returns false at the end. After the row's blocks, or without blocks, comes text of
// the row's own.
func (c *cut) next() bool {
	if c.left == 0 {
		return false
	}
	if len(c.row.Parts) > 0 {
		c.nextOfParts()
		return true
	}
	c.opens = c.at == 0
	switch {
	case c.at < len(c.row.Blocks) && c.p.BlockTokens > 0:
		c.stream = newStream(c.p.Seed, c.salt, blockDomain, c.row.Blocks[c.at])
		c.tokens = min(c.p.BlockTokens, c.left)
	default:
		c.stream = newStream(c.p.Seed, c.salt, rowDomain, uint64(c.row.Number))
		c.tokens = c.left
	}
	c.at++
	c.left -= c.tokens
	return true
}

// nextOfParts moves to the next piece of a row with parts: a block of a part, or what is left of it.
func (c *cut) nextOfParts() {
	if c.opens = c.rest == 0; c.opens {
		c.part, c.block = c.row.Parts[c.at], 0
		c.rest = min(c.part.Tokens, c.left)
		c.at++
		if c.part.Role == "assistant" {
			c.answers++
		}
	}
	if c.tokens = c.rest; c.block < len(c.part.Blocks) && c.p.BlockTokens > 0 {
		c.stream = newStream(c.p.Seed, c.salt, blockDomain, c.part.Blocks[c.block])
		c.tokens = min(c.p.BlockTokens, c.rest)
	} else {
		c.stream = newStream(c.p.Seed, c.salt, partDomain, c.part.ID)
	}
	c.block++
	c.rest -= c.tokens
	c.left -= c.tokens
}
