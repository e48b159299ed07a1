package synth

import (
	"math/rand/v2"
	"strconv"
	"time"

	"replayd/internal/trace"
)

// A user has one conversation after the other.
type user struct {
	conversation
	begun int // conversations
}

// next returns the user's next row without its number. left has the turns that each user still has in its first
// conversation, so that there is a steady state from the first second on; nil: all begin from the front.
func (u *user) next(s *Synthetic, slot int, left []int) trace.Record {
	for u.turn == u.turns { // twice if the skipped turns left no room for more
		// Numbers of users differ, whichever conversation ends first.
		u.begin(s, uint64(slot)+uint64(max(1, s.Users))*uint64(u.begun))
		if u.begun++; u.begun == 1 && left != nil && slot > 0 {
			u.skip(s, u.turns-min(u.turns, left[slot]))
		}
	}
	return u.nextTurn(s)
}

// A conversation is a conversation in progress. Its draws come from the stream of its number.
type conversation struct {
	number  uint64
	session string
	rng     *rand.Rand
	lengths Pair
	turns   int // in all
	turn    int // next
	fresh   bool
	parts   []trace.Part // of the next turn, but for its message
	tokens  int          // of parts
}

func (c *conversation) begin(s *Synthetic, number uint64) {
	source := newStream(s.Seed, 0, lengthDomain, number)
	*c = conversation{
		number: number, rng: rand.New(&source), fresh: true,
		turns: 1, lengths: Pair{Input: s.Input, Output: s.Output},
	}
	if s.Turns.Mean > 0 || s.Turns.Stddev > 0 {
		c.turns = s.Turns.whole(c.rng, MaxTurns)
	}
	if len(s.Pairs) > 0 {
		c.lengths = *pick(s.Pairs, c.rng)
	}
	if s.plain() {
		return
	}
	if s.talks() {
		c.session = "c" + strconv.FormatUint(number, 10)
	}
	c.parts = make([]trace.Part, 0, min(2*c.turns+1, 64))
	if s.System > 0 {
		c.addPart("system", systemID, s.System)
	}
}

// skip skips turns as if they had been sent: their messages and answers become history.
func (c *conversation) skip(s *Synthetic, turns int) {
	for c.turn < min(turns, c.turns) {
		c.nextTurn(s)
	}
	c.fresh = true
}

// nextTurn returns the conversation's next row. The conversation is over when its next prompt would be too long.
func (c *conversation) nextTurn(s *Synthetic) trace.Record {
	input := min(c.lengths.Input.whole(c.rng, trace.MaxTokens), trace.MaxTokens-c.tokens)
	r := trace.Record{InputTokens: input, Session: c.session, Turn: c.turn, First: c.session != "" && c.turn == 0}
	answer := max(standInTokens, input/2)
	if c.lengths.Output.Mean > 0 {
		answer = c.lengths.Output.whole(c.rng, trace.MaxTokens)
		r.OutputTokens = answer
	}
	if !c.fresh {
		wait := Normal{float64(s.Delay), float64(s.DelayStddev)}
		r.Delay, r.Gap = time.Duration(wait.draw(c.rng)), s.gap()
	}
	if !s.plain() {
		c.addPart("user", c.id(2*c.turn), input)
		// Later turns append after the parts of this row and never change them.
		r.InputTokens, r.Parts = c.tokens, c.parts[:len(c.parts):len(c.parts)]
		c.addPart("assistant", c.id(2*c.turn+1), answer)
	}
	c.turn++
	if c.tokens >= trace.MaxTokens {
		c.turns = c.turn
	}
	c.fresh = false
	r.Last = c.session != "" && c.turn == c.turns
	return r
}

func (c *conversation) addPart(role string, id uint64, tokens int) {
	c.parts = append(c.parts, trace.Part{Role: role, ID: id, Tokens: tokens})
	c.tokens += tokens
}

const (
	systemID = 0

	// standInTokens is the length of an answer in a history if rows have no output length, or half of the message's length if
	// that is more. AIPerf assumes the same (src/aiperf/dataset/composer/base.py).
	standInTokens = 128
)

// id returns the id of the part at a position in the conversation.
func (c *conversation) id(index int) uint64 {
	return (c.number+1)<<20 | uint64(index)
}
