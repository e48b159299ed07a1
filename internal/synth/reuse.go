package synth

import (
	"sync"

	"replayd/internal/trace"
)

// maxReused bounds the pieces that a Reuse remembers: about 40 MiB.
const maxReused = 1 << 20

// A Reuse counts the prompt tokens of a run that an earlier prompt of the run began with, too: the hits of an infinite prefix cache
// that was empty at the begin of the run. The load itself explains no more hits than these. Several goroutines may call its methods.
type Reuse struct {
	mu      sync.Mutex
	longest map[uint64]int32 // of each distinct front, by its hash: the most tokens of its last piece
	tokens  int64
	blind   bool // pieces of a prompt are unknown, or there are too many pieces
}

// Add takes the next prompt that is sent, with its salt. One that does not count is known to those after it, as a warm-up's is.
func (u *Reuse) Add(p *Prompter, r *trace.Record, salt uint64, counts bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if r.InputTokens == 0 || p.Texts != nil && len(r.Parts) == 0 || len(u.longest) > maxReused {
		u.blind = true
	}
	if u.blind {
		return
	}
	if u.longest == nil {
		u.longest = map[uint64]int32{}
	}
	front, hit := uint64(0), true
	for c := p.cut(r, salt, 0); c.next(); {
		size := int32(c.tokens)
		front = mix(front + golden ^ uint64(c.stream))
		had, known := u.longest[front]
		u.longest[front] = max(had, size)
		switch {
		case !hit || !counts:
		case known:
			u.tokens += int64(min(had, size))
		case c.part.Role == "assistant": // the server wrote such an answer itself, behind a front that it knows
			u.tokens += int64(size)
			known = true
		}
		hit = hit && known
	}
}

// Tokens returns the count. It is unknown if a prompt was given as text, or after a million distinct pieces.
func (u *Reuse) Tokens() (n int64, known bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.tokens, !u.blind
}
