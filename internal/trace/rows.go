package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"time"

	"replayd/internal/fault"
)

// Rows streams a File's rows in due order: by Offset, then by Number. Two goroutines must not use the same Rows
// concurrently; several Rows of one File may be used concurrently.
type Rows struct {
	file      *File
	in        *lines
	scratch   row
	number    int   // rows of the file before the next one to read
	inherited int   // how many of these are in File.inherited
	from      int64 // rows due before this instant are skipped
	last      int64 // instant of the row returned last
	ahead     spots // only for an unsorted file: rows that were read and not yet returned
	next      int   // only with File.order: index in it of the row to return next
	line      []byte
}

// Rows starts at the first row whose Offset is at least from. It skips at most a few thousand rows to get there. The
// error wraps ErrChanged if the file changed after Open checked it.
func (f *File) Rows(from time.Duration) (*Rows, error) {
	if err := f.unchanged(); err != nil {
		return nil, err
	}
	start := f.base + min(int64(max(from, 0)), math.MaxInt64-f.base)
	if f.order != nil {
		return &Rows{file: f, next: f.seek(start), from: start, last: f.base}, nil
	}
	// Take the last mark that has no earlier row due at start or later. The first mark has no earlier rows at all.
	i := sort.Search(len(f.index)-1, func(i int) bool { return f.index[i+1].latest >= start })
	m := f.index[i]
	section := io.NewSectionReader(f.data, m.offset, f.size-m.offset)
	in := newLines(section, m.offset, m.lines)
	in.tabs = f.tabs
	return &Rows{file: f, in: in, number: m.number, inherited: m.inherited, from: start, last: f.base}, nil
}

// Next returns the next row, or io.EOF after the last. The caller may keep the row. Any other error is final too; it
// wraps ErrChanged if the file changed after Open checked it.
func (r *Rows) Next() (Record, error) {
	for {
		next := r.read
		switch {
		case r.file.order != nil:
			next = r.fromOrder
		case !r.file.Stats.Sorted:
			next = r.fromAhead
		}
		at, err := next()
		if err != nil {
			return Record{}, err
		}
		if at < r.from {
			continue
		}
		if at < r.last {
			return Record{}, r.file.changed(r.scratch.Line, fault.New("timestamp", "due order", "an earlier row"))
		}
		r.last = at
		return r.record(at), nil
	}
}

// fromAhead leaves the row due next in scratch. Of the rows ahead it has the positions and not their content, which may
// be megabytes each.
func (r *Rows) fromAhead() (at int64, err error) {
	for len(r.ahead) <= Window {
		at, err := r.read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
		r.ahead.add(spot{at, r.scratch.Number, r.scratch.Line, r.in.start, int(r.in.end - r.in.start)})
	}
	if len(r.ahead) == 0 {
		return 0, io.EOF
	}
	s := r.ahead[0]
	r.ahead = r.ahead[1:]
	if s.at < r.from {
		return s.at, nil
	}
	r.line = slices.Grow(r.line[:0], s.bytes)[:s.bytes]
	if _, err := r.file.data.ReadAt(r.line, s.start); err != nil {
		return 0, fmt.Errorf("%s:%d: %w", r.file.name, s.line, err)
	}
	found := r.file.decode(trimmed(r.line, r.file.tabs), &r.scratch)
	return s.at, r.file.complete(found, s.number, s.line, &r.scratch)
}

// read leaves the file's next row in scratch and returns its instant. It returns io.EOF only if the file still has as
// many rows as when Open checked it.
func (r *Rows) read() (at int64, err error) {
	if r.number%markRows == 0 {
		if err := r.file.unchanged(); err != nil {
			return 0, err
		}
	}
	for {
		line, err := r.in.next()
		switch {
		case errors.Is(err, io.EOF) && r.number == r.file.Stats.Requests:
			if err := r.file.unchanged(); err != nil {
				return 0, err
			}
			return 0, io.EOF
		case errors.Is(err, io.EOF):
			return 0, r.otherCount()
		case err != nil:
			return 0, fmt.Errorf("%s:%d: %w", r.file.name, r.in.number, err)
		}
		found := r.file.decode(line, &r.scratch)
		if r.scratch.failed && len(found) == 0 {
			continue
		}
		if r.number == r.file.Stats.Requests {
			return 0, r.otherCount()
		}
		return r.complete(found)
	}
}

func (r *Rows) otherCount() error {
	return fmt.Errorf("%s: %w: it no longer has %d rows", r.file.name, ErrChanged, r.file.Stats.Requests)
}

// complete fills in the fields that the row's own line lacks, and returns the row's instant.
func (r *Rows) complete(found fault.List) (at int64, err error) {
	if err := r.file.complete(found, r.number, r.in.number, &r.scratch); err != nil {
		return 0, err
	}
	r.number++
	if r.file.Stats.HasTimestamps && !r.scratch.timed {
		if r.inherited == len(r.file.inherited) {
			return 0, r.file.changed(r.scratch.Line, fault.New("timestamp", "milliseconds", "none"))
		}
		r.scratch.at = r.file.inherited[r.inherited]
		r.inherited++
	}
	return r.scratch.at, nil
}

// record returns a copy of scratch with its Offset and without surplus block ids.
func (r *Rows) record(at int64) Record {
	out := r.scratch.Record
	out.Offset = time.Duration(at - r.file.base)
	out.First, out.Last = r.file.first.has(out.Number), r.file.last.has(out.Number)
	blocks := out.Blocks[:min(len(out.Blocks), blocksOf(out.InputTokens, r.file.Stats.BlockTokens))]
	if out.Blocks = nil; len(blocks) > 0 {
		out.Blocks = slices.Clone(blocks)
	}
	return out
}

// Each calls do for every row, in due order.
func (f *File) Each(ctx context.Context, do func(*Record)) error {
	rows, err := f.Rows(0)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		r, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && n%markRows == 0 && ctx.Err() != nil {
			err = fmt.Errorf("%s: %w", f.name, ctx.Err())
		}
		if err != nil {
			return err
		}
		do(&r)
	}
}
