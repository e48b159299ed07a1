package trace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"replayd/internal/fault"
	"replayd/internal/trace/ids"
)

// epochMillis separates timestamps that count from 0 from timestamps that count from the Unix epoch. In milliseconds it
// is three years of trace, or the year 1973.
const epochMillis = 100_000_000_000

// check reads the whole file and sets Stats and all fields that Rows needs.
func (f *File) check(ctx context.Context, o Options) error {
	size := cmp.Or(o.BlockTokens, blockSizes[0])
	for {
		p := newPass(f, o, size)
		if err := p.run(ctx); err != nil {
			return err
		}
		// The votes for a block size do not depend on the assumed size, so this happens at most once.
		if best := p.votes.best(p.layout.block); o.BlockTokens == 0 && !p.given && best != size {
			size = best
			continue
		}
		if err := p.faults.err(); err != nil {
			return err
		}
		if p.number == 0 {
			return fmt.Errorf("%s: want at least one row, got none", f.name)
		}
		p.settle()
		return f.measure(ctx, p.figures, p.size, o.Gap)
	}
}

// A pass is one reading of the file that finds every fault.
type pass struct {
	file    *File
	options Options
	size    int  // assumed tokens of a block
	given   bool // the file's header says the size

	faults, surplus faults
	format          Format
	layout          layout
	number          int // rows so far
	failed          int // requests without an answer; they are left out
	unused          Unused
	unsent          unsent
	held            []uint32                     // by session, of the first ones: tokens of the latest prompt and its answer
	later, shorter  int                          // turns after a first one by length, and those of them that cannot hold the turn before
	short           int                          // rows with fewer ids than blocks
	kinds           [textIDs | numberIDs + 1]int // rows by the kinds of their ids
	units           map[time.Duration]int        // rows by the unit of their timestamp, where it is not the format's
	scratch         row
	hash            string

	times     instants
	sessions  ids.Table       // by ids.Hash of their names
	turns     ids.Pages[turn] // by session, from 0
	first     bits            // by row, whether it is the first of its session
	last      bits            // likewise, the last
	parents   parents
	agents    ids.Table // by ids.Hash
	inherited []int64
	starts    []int64
	index     []mark
	figures   *statsCollector
	votes     blockVotes
}

// instants describe the file's own clock, as far as the rows so far show it.
type instants struct {
	first     int // line of the first good row; that row decides whether rows have timestamps
	timed     bool
	sorted    bool
	fractions bool  // a timestamp has a fraction of a millisecond
	base      int64 // earliest instant
	disorder  disorder
}

// add adds the instant of a row. It reports whether the row stands too far behind its place, and the row that is due later.
func (t *instants) add(at int64, line int) (ahead peak, far bool) {
	t.base = min(t.base, at)
	t.fractions = t.fractions || at%int64(time.Millisecond) != 0
	t.sorted = t.sorted && at >= t.disorder.latest.at
	return t.disorder.add(at, line)
}

// A subAgent is one of a session.
type subAgent struct{ session, agent string }

// A turn is the latest turn of a session so far.
type turn struct {
	at     int64
	line   uint32
	number uint32
}

func newPass(f *File, o Options, size int) *pass {
	return &pass{
		file: f, options: o, size: size, units: map[time.Duration]int{}, unused: Unused{}, times: instants{sorted: true}, figures: newStatsCollector(size, o.Gap),
		faults: faults{name: f.name}, surplus: faults{name: f.name},
	}
}

func (p *pass) run(ctx context.Context) error {
	hash := sha256.New()
	in := newLines(io.TeeReader(io.NewSectionReader(p.file.data, 0, p.file.size), hash), 0, 0)
	in.tabs = true // those of a header may separate names
	for {
		if p.number%markRows == 0 && ctx.Err() != nil {
			return fmt.Errorf("%s: %w", p.file.name, ctx.Err())
		}
		if p.number == math.MaxUint32 { // tables number rows, sessions and ids with 32 bits
			return fmt.Errorf("%s: want at most %d rows, got more", p.file.name, math.MaxUint32)
		}
		line, err := in.next()
		switch {
		case errors.Is(err, errLongLine):
			p.faults.add(in.number, fault.New("row", fmt.Sprintf("at most %d bytes", MaxLineBytes), "more"))
			p.number++
			continue
		case errors.Is(err, io.EOF):
			p.hash = hex.EncodeToString(hash.Sum(nil))
			return nil
		case err != nil:
			return fmt.Errorf("%s:%d: %w", p.file.name, in.number, err)
		}
		if p.format == "" {
			header, err := p.detect(line, in.number)
			if err != nil {
				return err
			}
			if p.file.decode = p.layout.decode; p.format == Bailian {
				p.file.chats = &chats{}
			}
			p.file.tabs, in.tabs = p.layout.tabs, p.layout.tabs
			if header {
				continue
			}
			line = trimmed(line, in.tabs)
		}
		p.row(line, in)
	}
}

// zero returns the time of the file's own clock at offset 0, as far as the rows so far tell.
func (p *pass) zero() int64 {
	if p.layout.rebased || p.times.base >= epochMillis*1e6 {
		return p.times.base
	}
	return 0
}

// settle sets Stats and the fields of the file that Rows needs.
func (p *pass) settle() {
	f := p.file
	f.index, f.inherited, f.starts, f.base = p.index, p.inherited, p.starts, p.zero()
	f.Stats = Stats{
		Format: p.format, SHA256: p.hash, Bytes: f.size, Requests: p.number, Sessions: p.sessions.Len(), Agents: p.agents.Len(),
		HasTimestamps: p.times.timed, Sorted: p.times.sorted, BlockTokens: p.size, Edges: p.parents.used,
		SurplusRows: p.surplus.Count, ShortRows: p.short, Warnings: append(p.surplus.Texts(f.name+": ", "warnings"), p.taken()...),
	}
	f.first, f.last = p.first, p.last
	if p.format == Sessions { // a later row can be due earlier
		f.first, f.last = endsOf(p.parents.rows, p.sessions.Len())
	}
	if p.format == Sessions && !p.times.sorted {
		f.sort(p.parents.rows)
	}
	if p.options.BySession {
		f.group(p.parents.rows)
	}
	f.Stats.Columns = p.layout.columnsRead()
	if p.layout.warning != "" {
		f.Stats.Warnings = append(f.Stats.Warnings, f.name+": "+p.layout.warning)
	}
	if p.failed > 0 {
		f.Stats.Warnings = append(f.Stats.Warnings,
			fmt.Sprintf("%s: requests that failed, with answers of 0 tokens, are left out: %d", f.name, p.failed))
	}
	first := time.Duration(p.times.base - f.base)
	if first >= time.Minute && p.options.From == 0 && !p.options.FromFirst {
		f.Stats.Warnings = append(f.Stats.Warnings, fmt.Sprintf("%s: the first row is due after %v, for timestamps are read as %s: "+
			"from %[2]v on nothing is waited for (--from, trace.from)", f.name, first, unitName(p.layout.unit)))
	}
	if p.shorter > p.later/2 && !p.options.Deltas {
		f.Stats.Warnings = append(f.Stats.Warnings, fmt.Sprintf("%s: later turns shorter than the turn before with its answer: %d of %d: "+
			"if rows have only what is new in each turn, the turns before can be sent with it (--deltas, trace.deltas)", f.name, p.shorter, p.later))
	}
	if p.format == Mooncake && p.options.Format == Auto && p.times.fractions && p.size == vllmBlock {
		f.Stats.Warnings = append(f.Stats.Warnings, fmt.Sprintf(
			"%s: blocks of %d tokens and fractions of a millisecond, as vLLM's timed traces have them in seconds: they are read as milliseconds (format vllm reads seconds)",
			f.name, vllmBlock))
	}
}

// countUnused counts the keys of a row that are not read.
func (p *pass) countUnused(o *object) {
	if p.layout.keys == nil {
		return
	}
	for _, m := range o.members {
		if !slices.ContainsFunc(p.layout.keys, func(key string) bool { return key == string(m.key) }) {
			p.unused.Add(string(m.key))
		}
	}
	if len(o.members) == 0 {
		for key, v := range o.values {
			if string(v) != "null" && !slices.Contains(p.layout.keys, key) {
				p.unused.Add(key)
			}
		}
	}
}

// taken says what was taken that the format has otherwise.
func (p *pass) taken() (warnings []string) {
	warn := func(format string, args ...any) {
		warnings = append(warnings, p.file.name+": "+fmt.Sprintf(format, args...))
	}
	if p.short > 0 {
		warn("rows with fewer ids than blocks: %d of %d: the rest of such a prompt is text of its own, "+
			"which no other row has", p.short, p.number)
	}
	if p.unsent.rows > 0 {
		warn("%s", &p.unsent)
	}
	if len(p.unused) > 0 {
		warn("%s", p.unused)
	}
	both := p.kinds[textIDs|numberIDs]
	if texts, numbers := p.kinds[textIDs]+both, p.kinds[numberIDs]+both; texts > 0 && numbers > 0 {
		warn(`hash_ids are texts in %d rows and numbers in %d: "1" and 1 are two ids`, texts, numbers)
	}
	for _, unit := range []time.Duration{time.Nanosecond, time.Microsecond, time.Millisecond, dated} {
		if rows := p.units[unit]; rows > 0 {
			warn("timestamps read as %s: %d of %d, for they can be no %s", unitName(unit), rows, p.number, unitName(p.layout.unit))
		}
	}
	return warnings
}

// measure completes Stats. If the file is not in due order, measure reads the rows again in due order, because some
// figures depend on it.
func (f *File) measure(ctx context.Context, figures *statsCollector, size int, gap time.Duration) error {
	if !f.Stats.Sorted {
		figures = newStatsCollector(size, gap)
		if err := f.Each(ctx, func(r *Record) { figures.add(r, int64(r.Offset)+f.base, f.base) }); err != nil {
			return err
		}
	}
	figures.fill(&f.Stats, f.base)
	return nil
}

type faults struct {
	name string
	fault.Tally
}

// add adds a fault of a line. Line 0 is the whole file.
func (f *faults) add(line int, what fault.Fault) {
	what.Place = f.at(line)
	f.Add(what)
}

func (f *faults) at(line int) string {
	if line == 0 {
		return f.name
	}
	return fmt.Sprintf("%s:%d", f.name, line)
}

func (f *faults) err() error { return f.Err(f.name + ": ") }
