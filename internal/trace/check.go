package trace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"
)

// epochMillis separates timestamps that count from 0 from timestamps that count from the Unix epoch. In milliseconds it
// is three years of trace, or the year 1973.
const epochMillis = 100_000_000_000

// check reads the whole file and sets Stats and all fields that Rows needs.
func (f *File) check(ctx context.Context, o Options) error {
	size := o.BlockTokens
	if size == 0 {
		size = blockSizes[0]
	}
	for {
		p := newPass(f, o, size)
		if err := p.run(ctx); err != nil {
			return err
		}
		// The votes for a block size do not depend on the assumed size, so this happens at most once.
		if best := p.best(); o.BlockTokens == 0 && !p.given && best != size {
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
		return f.measure(ctx, p)
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
	scratch         row
	hash            string

	first     int // line of the first good row; that row decides whether rows have timestamps
	timed     bool
	sorted    bool
	fractions bool  // a timestamp has a fraction of a millisecond
	base      int64 // earliest instant
	disorder  disorder
	turns     map[string]turn
	parents   parents
	agents    map[subAgent]struct{}
	inherited []int64
	starts    []int64
	index     []mark
	figures   *statsCollector
	exact     [len(blockSizes)]int // by block size: rows with exactly as many ids as their prompt has blocks
	sizes     blockRange
}

// A subAgent is one of a session.
type subAgent struct{ session, agent string }

// A turn is the latest turn of a session so far.
type turn struct {
	at    int64
	line  int
	index int32 // of the session, from 1
	last  spotted
}

// A spotted row is known by its instant and number.
type spotted struct {
	at     int64
	number int
}

func newPass(f *File, o Options, size int) *pass {
	return &pass{
		file: f, options: o, size: size, sorted: true, turns: map[string]turn{}, agents: map[subAgent]struct{}{}, figures: newStatsCollector(size),
		faults: faults{name: f.name}, surplus: faults{name: f.name},
	}
}

func (p *pass) run(ctx context.Context) error {
	hash := sha256.New()
	in := newLines(io.TeeReader(io.NewSectionReader(p.file.data, 0, p.file.size), hash), 0, 0)
	for {
		if p.number%markRows == 0 && ctx.Err() != nil {
			return fmt.Errorf("%s: %w", p.file.name, ctx.Err())
		}
		line, err := in.next()
		switch {
		case errors.Is(err, errLongLine):
			p.faults.add(in.number, fault{"row", fmt.Sprintf("at most %d bytes", MaxLineBytes), "more"})
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
				p.file.chats = newChats()
			}
			if header {
				continue
			}
		}
		p.row(line, in)
	}
}

// zero returns the time of the file's own clock at offset 0, as far as the rows so far tell.
func (p *pass) zero() int64 {
	if p.layout.rebased || p.base >= epochMillis*1e6 {
		return p.base
	}
	return 0
}

// settle sets Stats and the fields of the file that Rows needs.
func (p *pass) settle() {
	f := p.file
	f.index, f.inherited, f.starts, f.base = p.index, p.inherited, p.starts, p.zero()
	f.Stats = Stats{
		Format: p.format, SHA256: p.hash, Bytes: f.size, Requests: p.number, Sessions: len(p.turns), Agents: len(p.agents),
		HasTimestamps: p.timed, Sorted: p.sorted, BlockTokens: p.size, Edges: p.parents.used,
		SurplusRows: p.surplus.count, Warnings: p.surplus.list("warnings"),
	}
	for _, t := range p.turns {
		f.last.set(t.last.number)
	}
	if p.format == Sessions && !p.sorted {
		f.sort(p.parents.rows)
	}
	if p.options.BySession {
		f.group(p.parents.rows)
	}
	if p.failed > 0 {
		f.Stats.Warnings = append(f.Stats.Warnings,
			fmt.Sprintf("%s: requests that failed, with answers of 0 tokens, are left out: %d", f.name, p.failed))
	}
	if first := time.Duration(p.base - f.base); first >= 24*time.Hour {
		f.Stats.Warnings = append(f.Stats.Warnings,
			fmt.Sprintf("%s: the first row is due after %v: timestamps are read as %s", f.name, first, p.layout.unitName()))
	}
	if p.format == Mooncake && p.options.Format == Auto && p.fractions && p.size == vllmBlock {
		f.Stats.Warnings = append(f.Stats.Warnings, fmt.Sprintf(
			"%s: blocks of %d tokens and fractions of a millisecond, as vLLM's timed traces have them in seconds: they are read as milliseconds (format vllm reads seconds)",
			f.name, vllmBlock))
	}
	if f.chats != nil {
		f.chats.settle()
	}
}

// measure completes Stats. If the file is not in due order, measure reads the rows again in due order, because some
// figures depend on it.
func (f *File) measure(ctx context.Context, p *pass) error {
	figures := p.figures
	if !f.Stats.Sorted {
		figures = newStatsCollector(p.size)
		rows, err := f.Rows(0)
		if err != nil {
			return err
		}
		for {
			r, err := rows.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err == nil && r.Number%markRows == 0 {
				err = ctx.Err()
			}
			if err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
			figures.add(&r, int64(r.Offset)+f.base, f.base)
		}
	}
	figures.fill(&f.Stats, f.base)
	return nil
}
