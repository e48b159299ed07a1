package trace

import (
	"fmt"
	"math"
	"slices"
	"time"

	"replayd/internal/fault"
	"replayd/internal/trace/ids"
)

// blockSizes are the usual block sizes. The size that matches the most rows wins; in a tie the format's own size wins,
// else the first in this list. Where none of them matches all rows, a size that does wins, and the roundest of these.
var blockSizes = [...]int{512, 256, 128, 64, 32, 16, 1024}

// maxDetected bounds the sizes that are not in blockSizes. Larger ones would accept rows that lack most of their ids.
const maxDetected = 4096

// leastRows is the number of rows with ids that show an unusual block size. In fewer rows ids that are missing, or
// too many, can look like one.
const leastRows = 8

// blockVotes find the block size of a file.
type blockVotes struct {
	rows        int
	exact       [len(blockSizes)]int // by block size: rows with exactly as many ids as their prompt has blocks
	full        [len(blockSizes)]int // likewise: as it has full blocks
	least, most int                  // block sizes with which that is so of each row
}

func (v *blockVotes) add(tokens, ids int) {
	if v.rows == 0 {
		v.least, v.most = 1, maxDetected
	}
	v.rows++
	v.least = max(v.least, blocksOf(tokens, ids))
	if ids > 1 {
		v.most = min(v.most, (tokens-1)/(ids-1))
	}
	for i, size := range blockSizes {
		if ids == blocksOf(tokens, size) {
			v.exact[i]++
		}
		if ids == tokens/size {
			v.full[i]++
		}
	}
}

// best returns the block size that matches the most rows, either with an id of a last block that is not full or without. In a
// tie the one with such ids wins, then the format's own size.
func (v *blockVotes) best(own int) int {
	best := max(0, slices.Index(blockSizes[:], own))
	for i := range blockSizes {
		if rows, most := v.matched(i), v.matched(best); rows > most || rows == most && v.exact[i] > v.exact[best] {
			best = i
		}
	}
	for _, step := range [...]int{100, 50, 16, 10, 1} {
		size := blocksOf(v.least, step) * step
		if v.rows >= leastRows && size <= v.most && v.matched(best) < v.rows {
			return size
		}
	}
	return blockSizes[best]
}

// matched returns how many rows have ids for all their blocks, or else all their full ones, whichever is more.
func (v *blockVotes) matched(size int) int { return max(v.exact[size], v.full[size]) }

func (p *pass) row(line []byte, in *lines) {
	r := &p.scratch
	found := p.file.decode(line, r)
	if r.failed && len(found) == 0 {
		p.failed++
		return
	}
	if p.number%markRows == 0 {
		p.index = append(p.index, mark{
			offset: in.start, lines: in.number - 1, number: p.number,
			inherited: len(p.inherited), latest: p.times.disorder.latest.at,
		})
	}
	r.Number, r.Line = p.number, in.number
	placed := p.format == Sessions || p.options.BySession
	if placed {
		p.starts = append(append(p.starts, make([]int64, r.Number-len(p.starts))...), in.start)
	}
	p.number++
	if len(found) == 0 {
		if p.file.chats != nil {
			p.file.chats.add(r)
		}
		found = slices.Concat(p.checkForm(r), p.checkInstant(r), p.fit(r))
	}
	if placed {
		p.parents.add(r, int32(p.sessionOf(r)), len(found) > 0)
	}
	place := in.number
	if p.file.lowered {
		place = 0
	}
	for _, f := range found {
		p.faults.add(place, f)
	}
	switch {
	case !p.times.sorted:
		p.figures = nil // another reading makes them
	case len(found) == 0:
		p.figures.add(&r.Record, r.at, p.zero())
	}
}

// sessionOf returns the number of a row's session, from 1; 0: it has none, or this is its first row.
func (p *pass) sessionOf(r *row) uint32 {
	if r.Session == "" {
		return 0
	}
	return p.sessions.Find(ids.Hash(r.Session))
}

func (p *pass) takeTurn(r *row, session uint32) {
	t := turn{r.at, uint32(min(r.Line, math.MaxUint32)), uint32(r.Number)}
	if session == 0 {
		p.sessions.Add(ids.Hash(r.Session))
		p.turns.Push(t)
		p.first.set(r.Number)
	} else {
		before := p.turns.At(session - 1)
		p.last.clear(int(before.number))
		p.compare(r, session)
		*before = t
	}
	if len(p.held) < mostHeld {
		p.held = append(p.held, make([]uint32, p.sessions.Len()-len(p.held))...)
	}
	if number := p.sessionOf(r); int(number) <= len(p.held) {
		p.held[number-1] = uint32(r.InputTokens + r.OutputTokens)
	}
	p.last.set(r.Number)
}

// mostHeld bounds the sessions whose later turns are compared.
const mostHeld = 256

// compare counts a later turn by length, and whether it can hold the turn before.
func (p *pass) compare(r *row, session uint32) {
	if r.InputTokens == 0 || r.After != nil || p.format != Mooncake || int(session) > len(p.held) {
		return
	}
	p.later++
	if uint32(r.InputTokens) < p.held[session-1] {
		p.shorter++
	}
}

// checkInstant checks the row's instant against earlier rows. A turn without a timestamp inherits the instant of
// the previous turn.
func (p *pass) checkInstant(r *row) fault.List {
	if p.times.first == 0 {
		p.times.first, p.times.timed, p.times.base = r.Line, r.timed, r.at
		if r.dated {
			p.layout.unit = 0
		}
	}
	session := p.sessionOf(r)
	later := session != 0
	var before turn
	if later {
		before = *p.turns.At(session - 1)
	}
	if r.claimed >= 0 && r.claimed != r.Number {
		return fault.List{fault.New("row", fmt.Sprintf("%d, its place in the file from 0", r.Number), fmt.Sprint(r.claimed))}
	}
	earliest, found := p.parents.checkParents(r, int32(session), p.times.timed, p.wait)
	if len(found) > 0 {
		return found
	}
	switch {
	case r.timed && r.dated != (p.layout.unit == 0):
		got := unitName(0)
		if !r.dated {
			got = "a number"
		}
		return fault.List{fault.New("timestamp", fmt.Sprintf("%s, as on line %d", unitName(p.layout.unit), p.times.first), got)}
	case !p.times.timed && r.timed:
		return fault.List{fault.New("timestamp", fmt.Sprintf("none, as on line %d", p.times.first), "one")}
	case p.times.timed && r.Floating:
		p.inherited = append(p.inherited, r.at)
	case r.After != nil && r.timed: // its session's other rows may be due later
		if r.at < earliest && p.options.Wait != nil { // it is read after its parents
			r.at, p.times.sorted = earliest, false
		}
	case p.times.timed && !r.timed && (!later || r.After != nil):
		want := fmt.Sprintf("%s, as on line %d", unitName(p.layout.unit), p.times.first)
		return fault.List{fault.New("timestamp", want, "none")}
	case p.times.timed && !r.timed:
		r.at = before.at
		p.inherited = append(p.inherited, r.at)
	case later && r.at < before.at:
		return fault.List{fault.New("timestamp", fmt.Sprintf("≥ %s, that of the session's turn before on line %d",
			p.instant(before.at), before.line), p.instant(r.at))}
	}
	if r.Session != "" {
		p.takeTurn(r, session)
	}
	if r.Agent != "" {
		p.agents.Add(ids.Hash(subAgent{r.Session, r.Agent}))
	}
	if ahead, far := p.times.add(r.at, r.Line); far && p.format != Sessions {
		return fault.List{fault.New("timestamp", fmt.Sprintf("≥ %s, that of line %d more than %d rows before",
			p.instant(ahead.at), ahead.line, Window), p.instant(r.at))}
	}
	return nil
}

// checkForm counts what is written in another way than the format has it, which Strict refuses.
func (p *pass) checkForm(r *row) (found fault.List) {
	p.countUnused(&r.object)
	p.unsent.add(r.unsent)
	p.kinds[r.kinds]++
	both := p.kinds[textIDs|numberIDs] > 0 || p.kinds[textIDs] > 0 && p.kinds[numberIDs] > 0
	if r.kinds != 0 && both && p.options.Strict {
		found = append(found, fault.New("hash_ids", "ids of one kind in all rows, numbers or texts", "both"))
	}
	if r.unit != 0 {
		if p.options.Strict {
			found = append(found, fault.New("timestamp", unitName(p.layout.unit), unitName(r.unit)))
		}
		p.units[r.unit]++
	}
	return found
}

// wait returns how long a wait takes in the time of the trace.
func (p *pass) wait(recorded time.Duration) int64 {
	if p.options.Wait == nil {
		return int64(recorded)
	}
	return min(maxNanos, max(0, int64(p.options.Wait(recorded))))
}

// instant formats a time as the file does.
func (p *pass) instant(at int64) string {
	if p.layout.unit == 0 {
		return time.Unix(0, at).UTC().Format(time.DateTime + ".0000000")
	}
	return inUnits(time.Duration(at), p.layout.unit)
}

func (p *pass) fit(r *row) fault.List {
	if len(r.Blocks) == 0 {
		return nil
	}
	p.votes.add(r.InputTokens, len(r.Blocks))
	blocks := blocksOf(r.InputTokens, p.size)
	switch ids := len(r.Blocks); {
	case ids == blocks || p.layout.partial && ids == r.InputTokens/p.size:
		return nil
	case ids < blocks && !p.options.Strict:
		p.short++
		return nil
	}
	want := fmt.Sprintf("%d ids for %d tokens in blocks of %d", blocks, r.InputTokens, p.size)
	found := fault.New("hash_ids", want, fmt.Sprint(len(r.Blocks)))
	if p.options.Strict {
		return fault.List{found}
	}
	found.Want += ": the surplus is ignored"
	p.surplus.add(r.Line, found)
	r.Blocks = r.Blocks[:blocks]
	return nil
}

func blocksOf(tokens, size int) int { return (tokens + size - 1) / size }
