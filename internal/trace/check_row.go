package trace

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// blockSizes are the usual block sizes. The size that matches the most rows wins; in a tie the format's own size wins,
// else the first in this list. Where none of them matches all rows, a size that does wins: see blockRange.
var blockSizes = [...]int{512, 256, 128, 64, 32, 16, 1024}

// maxDetected bounds the sizes that are not in blockSizes. Larger ones would accept rows that lack most of their ids.
const maxDetected = 4096

// A blockRange holds the block sizes with which each row so far has exactly as many ids as its prompt has blocks.
type blockRange struct{ least, most, rows int }

func (b *blockRange) add(tokens, ids int) {
	if b.rows == 0 {
		b.least, b.most = 1, maxDetected
	}
	b.rows++
	b.least = max(b.least, blocksOf(tokens, ids))
	if ids > 1 {
		b.most = min(b.most, (tokens-1)/(ids-1))
	}
}

// leastRows is the number of rows with ids that show an unusual block size. In fewer rows ids that are missing, or too many, can look
// like one.
const leastRows = 8

// roundest returns the roundest of the sizes, or 0 if no size matches every row, or there are too few rows.
func (b *blockRange) roundest() int {
	for _, step := range [...]int{100, 50, 16, 10, 1} {
		if size := blocksOf(b.least, step) * step; b.rows >= leastRows && size <= b.most {
			return size
		}
	}
	return 0
}

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
			inherited: len(p.inherited), latest: p.disorder.latest.at,
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
		found = append(p.place(r), p.fit(r)...)
	}
	if placed {
		p.parents.add(r, p.turns[r.Session].index, len(found) > 0)
	}
	for _, f := range found {
		p.faults.add(in.number, f)
	}
	if len(found) == 0 && p.sorted {
		p.figures.add(&r.Record, r.at, p.zero())
	}
}

// place checks the row's instant against earlier rows. A turn without a timestamp inherits the instant of the previous
// turn.
func (p *pass) place(r *row) []fault {
	if p.first == 0 {
		p.first, p.timed, p.base = r.Line, r.timed, r.at
	}
	before, later := p.turns[r.Session]
	if r.claimed >= 0 && r.claimed != r.Number {
		return []fault{{"row", fmt.Sprintf("%d, its place in the file from 0", r.Number), fmt.Sprint(r.claimed)}}
	}
	earliest, found := p.parents.place(r, before.index, p.timed, p.wait)
	if len(found) > 0 {
		return found
	}
	switch {
	case !p.timed && r.timed:
		return []fault{{"timestamp", fmt.Sprintf("none, as on line %d", p.first), "one"}}
	case p.timed && r.Floating:
		p.inherited = append(p.inherited, r.at)
	case r.After != nil && r.timed: // its session's other rows may be due later
		if r.at < earliest && p.options.Wait != nil { // it is read after its parents
			r.at, p.sorted = earliest, false
		}
	case p.timed && !r.timed && (!later || r.After != nil):
		return []fault{{"timestamp", fmt.Sprintf("%s, as on line %d", p.layout.unitName(), p.first), "none"}}
	case p.timed && !r.timed:
		r.at = before.at
		p.inherited = append(p.inherited, r.at)
	case later && r.at < before.at:
		return []fault{{"timestamp", fmt.Sprintf("≥ %s, that of the session's turn before on line %d",
			p.instant(before.at), before.line), p.instant(r.at)}}
	}
	if r.Session != "" {
		if before.index == 0 {
			before.index = int32(min(len(p.turns)+1, math.MaxInt32))
		}
		last := before.last
		if !later || r.at >= last.at {
			last = spotted{r.at, r.Number}
		}
		p.turns[r.Session] = turn{r.at, r.Line, before.index, last}
	}
	if r.Agent != "" {
		p.agents[subAgent{r.Session, r.Agent}] = struct{}{}
	}
	p.base = min(p.base, r.at)
	p.fractions = p.fractions || r.at%int64(time.Millisecond) != 0
	p.sorted = p.sorted && r.at >= p.disorder.latest.at
	if ahead, far := p.disorder.add(r.at, r.Line); far && p.format != Sessions {
		return []fault{{"timestamp", fmt.Sprintf("≥ %s, that of line %d more than %d rows before",
			p.instant(ahead.at), ahead.line, Window), p.instant(r.at)}}
	}
	return nil
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
		return time.Unix(0, at).UTC().Format(azureTimes[0] + ".0000000")
	}
	return string(appendUnits(nil, time.Duration(at), p.layout.unit))
}

// fit checks the number of ids against the row's length.
func (p *pass) fit(r *row) []fault {
	if len(r.Blocks) == 0 {
		return nil
	}
	p.file.maxID = max(p.file.maxID, slices.Max(r.Blocks))
	p.sizes.add(r.InputTokens, len(r.Blocks))
	for i, size := range blockSizes {
		if len(r.Blocks) == blocksOf(r.InputTokens, size) {
			p.exact[i]++
		}
	}
	blocks := blocksOf(r.InputTokens, p.size)
	if len(r.Blocks) == blocks || p.layout.partial && len(r.Blocks) == r.InputTokens/p.size {
		return nil
	}
	found := fault{"hash_ids", fmt.Sprintf("%d ids for %d tokens in blocks of %d", blocks, r.InputTokens, p.size), fmt.Sprint(len(r.Blocks))}
	if len(r.Blocks) < blocks || p.options.Strict {
		return []fault{found}
	}
	p.surplus.add(r.Line, fault{found.field, found.want, found.got + ": the surplus is ignored"})
	r.Blocks = r.Blocks[:blocks]
	return nil
}

func blocksOf(tokens, size int) int { return (tokens + size - 1) / size }

// best returns the block size that matches the most rows. In a tie the format's own size wins.
func (p *pass) best() int {
	best := max(0, slices.Index(blockSizes[:], p.layout.block))
	for i := range blockSizes {
		if p.exact[i] > p.exact[best] {
			best = i
		}
	}
	if size := p.sizes.roundest(); size > 0 && p.exact[best] < p.sizes.rows {
		return size
	}
	return blockSizes[best]
}
