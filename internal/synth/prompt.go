// Package synth makes prompts of an exact number of tokens, and made-up traces. It is a function of its input: the
// same row, seed, salt and overhead give the same bytes on every machine and in every version.
package synth

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"replayd/internal/token"
	"replayd/internal/trace"
)

// Form says what a prompt is made of.
type Form string

// Forms.
const (
	Text   Form = "text"   // words, for chat and completions
	Tokens Form = "tokens" // token ids, for /v1/completions
)

// Options of a Prompter.
type Options struct {
	Words       *token.Words
	Form        Form   // what Bytes counts
	Seed        uint64 // replays that must not share a prefix cache take different ones
	BlockTokens int    // tokens of a full block; 0 for a trace without blocks
}

// A Prompter makes the prompts of one trace. It may be used by several goroutines at once.
type Prompter struct {
	Form Form // as in Options

	words       *token.Words
	seed        uint64
	blockTokens int
}

// New returns all that is wrong with the options at once.
func New(o Options) (*Prompter, error) {
	var errs []error
	if o.Words == nil {
		errs = append(errs, errors.New("words: want a word list, got none"))
	}
	if o.Form != Text && o.Form != Tokens {
		errs = append(errs, fmt.Errorf("form: want %q or %q, got %q", Text, Tokens, o.Form))
	}
	if o.BlockTokens < 0 {
		errs = append(errs, fmt.Errorf("block_tokens: want an integer ≥ 0, got %d", o.BlockTokens))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return &Prompter{Form: o.Form, words: o.Words, seed: o.Seed, blockTokens: o.BlockTokens}, nil
}

// AppendText appends the prompt of a row as words and says how many tokens it has: InputTokens − overhead, and at
// least 1. The salt is Salt.At's; the overhead (≥ 0) is what a chat template adds, and is taken off the tail.
//
// The text is made of a-z and single spaces, so that it needs no escaping in JSON. It begins with a word that is one
// token without a leading space, for chat templates trim and SentencePiece puts in a space of its own.
func (p *Prompter) AppendText(dst []byte, r *trace.Record, salt uint64, overhead int) (prompt []byte, tokens int) {
	total := max(1, r.InputTokens-overhead)
	starters, words := uint64(p.words.Starters()), uint64(p.words.Len())
	for c := p.cut(r, salt, total); c.next(); {
		n := c.tokens
		if c.first {
			dst = p.words.AppendStarter(dst, c.stream.below(starters))
			n--
		}
		for range n {
			dst = p.words.Append(dst, c.stream.below(words))
		}
	}
	return dst, total
}

// AppendIDs does the same with token ids, as a JSON array: [51234,1023].
func (p *Prompter) AppendIDs(dst []byte, r *trace.Record, salt uint64, overhead int) (prompt []byte, tokens int) {
	total := max(1, r.InputTokens-overhead)
	low, ids := int64(p.words.FirstID), uint64(p.words.LastID-p.words.FirstID+1)
	open := byte('[')
	for c := p.cut(r, salt, total); c.next(); {
		for range c.tokens {
			dst = append(dst, open)
			dst = strconv.AppendInt(dst, low+int64(c.stream.below(ids)), 10)
			open = ','
		}
	}
	return append(dst, ']'), total
}

// Bytes is the room that the row's prompt needs in the Prompter's form, before any overhead is taken off: for ids at
// least what it comes to, for text too but for one prompt in 10¹⁰.
func (p *Prompter) Bytes(r *trace.Record) int {
	n := float64(max(1, r.InputTokens))
	if p.Form == Tokens {
		return 6*int(n) + 1 // five digits and a comma each, the two brackets
	}
	// Lengths of words are independent draws with a deviation of 2.4 bytes, and none is over 16: mean + 6.6 deviations.
	mean := float64(p.words.Bytes()) / float64(p.words.Len())
	return int(math.Ceil(min(16*n, mean*n+16*math.Sqrt(n))))
}

// A cut walks over the pieces of a prompt: each is the beginning of a stream.
type cut struct {
	stream stream
	tokens int  // to take from stream
	first  bool // the piece begins the prompt

	p    *Prompter
	row  *trace.Record
	salt uint64
	at   int // pieces so far
	left int // tokens that later pieces will hold
}

func (p *Prompter) cut(r *trace.Record, salt uint64, total int) cut {
	return cut{p: p, row: r, salt: salt, left: total}
}

// next turns to the next piece, false at the end. Behind the row's blocks, or where it has none, comes text of its own.
func (c *cut) next() bool {
	if c.left == 0 {
		return false
	}
	if c.at < len(c.row.Blocks) && c.p.blockTokens > 0 {
		c.stream = newStream(c.p.seed, c.salt, blockDomain, c.row.Blocks[c.at])
		c.tokens = min(c.p.blockTokens, c.left)
	} else {
		c.stream = newStream(c.p.seed, c.salt, rowDomain, uint64(c.row.Number))
		c.tokens = c.left
	}
	c.first = c.at == 0
	c.at++
	c.left -= c.tokens
	return true
}
