package trace

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"slices"
	"strings"
	"time"
)

// Formats of whole sessions are lowered to the format Sessions when they are opened: the rows of all sessions, in due order, in
// a temporary file. From then on that file is the trace. It holds each row in one line, so that reading needs little memory.

// A lowering writes the rows of sessions. They wait in a file of their own until all are known. In memory it keeps 40 bytes a
// row, and 16 for each parent that a row names.
type lowering struct {
	format  Format
	options *Options
	block   int // tokens of a block; 0: no session yet
	faults  faults
	digest  hash.Hash
	bytes   int64 // of the sources
	sha     string

	settle   func() error // adds rows, or sets the parents of all, at the end; nil: they are known
	waiting  *spool
	writer   Writer // formats the lines
	rows     []lowered
	parents  []Edge
	names    []subAgent        // of rows whose session is known only at the end
	untimed  int               // requests without the time of their answer
	ids      map[string]string // by session id: the file and line of the session; also request ids, without
	warnings []string          // of settle
	kinds    idKinds           // of all rows
	unsent   unsent
	latest   int // row of the file that was added last; -1: none. Only of Bodies
}

// A lowered row waits for its place in the trace.
type lowered struct {
	at       int64
	start    int64 // of its line in waiting
	bytes    int32
	parents  int32 // how many
	floating bool  // at is the earliest instant that they allow
	alone    bool  // without a session
	edges    int   // index of the first in parents
	name     int32 // index in names, from 1; 0: the line has the session, or there is none
}

func newLowering(format Format, o *Options) (*lowering, error) {
	waiting, err := newSpool(o.maxSpool)
	if err != nil {
		return nil, err
	}
	return &lowering{
		format: format, options: o, digest: sha256.New(), waiting: waiting, writer: Writer{format: Sessions}, ids: map[string]string{},
	}, nil
}

// session adds the rows of one session. Their Number is not set, and their After counts the rows of the session from 0, each
// after its parents.
func (l *lowering) session(rows []Record) error {
	first := len(l.rows)
	for i := range rows {
		for j := range rows[i].After {
			rows[i].After[j].Row += first
		}
		if err := l.row(&rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// row adds one row. Its After counts all rows that were added before, from 0.
func (l *lowering) row(r *Record) error {
	l.writer.line = l.writer.line[:0]
	if err := l.writer.sessionsRest(r, false); err != nil {
		return err
	}
	l.rows = append(l.rows, lowered{
		at: int64(r.Offset), start: l.waiting.size, bytes: int32(len(l.writer.line)), parents: int32(len(r.After)), floating: r.Floating, alone: r.Session == "",
		edges: len(l.parents),
	})
	l.parents = append(l.parents, r.After...)
	return l.waiting.write(l.writer.line)
}

// hang appends a row that was added to rows, with its parents, which are earlier ones of rows.
func (l *lowering) hang(rows []lowered, row int, after []Edge) []lowered {
	r := l.rows[row]
	r.edges, r.parents, r.floating = len(l.parents), int32(len(after)), len(after) > 0
	l.parents = append(l.parents, after...)
	if r.floating {
		r.at = int64(allowed(after, func(row int) int64 { return rows[row].at }))
	}
	return append(rows, r)
}

// warn counts what was changed or left out. Nothing is said of 0.
func (l *lowering) warn(n int, format string, args ...any) {
	if n > 0 {
		l.warnings = append(l.warnings, fmt.Sprintf(format, args...))
	}
}

// numberOf returns the number of a key: its own, or else the next fresh one.
func numberOf[K comparable](numbers map[K]uint64, key K, fresh *uint64) uint64 {
	n, known := numbers[key]
	if !known {
		n = *fresh
		numbers[key] = n
		*fresh++
	}
	return n
}

// allowed returns the earliest instant that the parents of a row allow, by their instants.
func allowed(after []Edge, at func(row int) int64) (earliest time.Duration) {
	for _, e := range after {
		earliest = max(earliest, later(time.Duration(at(e.Row)), e.Wait))
	}
	return earliest
}

// later returns at + d, or maxNanos if that is less.
func later(at, d time.Duration) time.Duration {
	if d >= maxNanos-at {
		return maxNanos
	}
	return at + d
}

// finish writes the trace, unless a source has failed. It returns the faults of the sessions, if there are any.
func (l *lowering) finish(ctx context.Context, name string, failed error) (trace *os.File, err error) {
	defer func() { err = errors.Join(err, l.waiting.file.Close()) }()
	if failed != nil {
		return nil, failed
	}
	l.faults.name = name
	if err := l.faults.err(); err != nil {
		return nil, err
	}
	if l.settle != nil {
		if err := l.settle(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if len(l.rows) == 0 {
		err := fmt.Errorf("%s: %w", name, ErrNoRows)
		if len(l.warnings) > 0 {
			err = fmt.Errorf("%w: %s", err, strings.Join(l.warnings, "; "))
		}
		return nil, err
	}
	l.sha = hex.EncodeToString(l.digest.Sum(nil))
	if err := l.waiting.out.Flush(); err != nil {
		return nil, err
	}
	out, err := newSpool(l.options.maxSpool)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(l.write(ctx, out), out.out.Flush()); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), out.file.Close())
	}
	return out.file, nil
}

// write writes the rows in due order. Rows due together keep the order of the sessions, in which parents come first.
func (l *lowering) write(ctx context.Context, out *spool) error {
	order := inOrder(len(l.rows), func(a, b int) int { return cmp.Compare(l.rows[a].at, l.rows[b].at) })
	place := make([]int, len(order))
	for i, of := range order {
		place[of] = i
	}
	if err := out.write(fmt.Appendf(nil, `{"schema":"%s","block_size":%d}`+"\n", sessionsSchema, l.block)); err != nil {
		return err
	}
	w := &l.writer
	for i, of := range order {
		if i%markRows == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		r := l.rows[of]
		after := append([]Edge{}, l.parents[r.edges:r.edges+int(r.parents)]...)
		if r.alone && r.name == 0 {
			after = nil
		}
		for j := range after {
			after[j].Row = place[after[j].Row]
		}
		w.line = appendPlace(w.line[:0], i, after)
		if !r.floating {
			w.millis("timestamp", time.Duration(r.at))
		}
		if r.name > 0 {
			name := l.names[r.name-1]
			if err := errors.Join(w.string("session_id", name.session), w.string("agent_id", name.agent)); err != nil {
				return err
			}
		}
		w.line = append(w.line, ',')
		head := len(w.line)
		w.line = slices.Grow(w.line, int(r.bytes))[:head+int(r.bytes)-1]
		if _, err := l.waiting.file.ReadAt(w.line[head:], r.start+1); err != nil { // without its opening brace
			return fmt.Errorf("spool: %w", err)
		}
		if len(w.line) >= MaxLineBytes {
			return fmt.Errorf("row %d: want a line of at most %d bytes, got %d", i, MaxLineBytes, len(w.line)+1)
		}
		if err := out.write(append(w.line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// describe makes s the figures of the source.
func (l *lowering) describe(s *Stats, name string) {
	s.Format, s.SHA256, s.Bytes = l.format, l.sha, l.bytes
	if l.untimed > 0 {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%s: requests without api_time: %d of %d: the wait after each includes the time of its answer",
			name, l.untimed, len(l.rows)))
	}
	if l.kinds == numberIDs|textIDs {
		s.Warnings = append(s.Warnings, name+`: some ids are texts and some numbers: "1" and 1 are two ids`)
	}
	if l.unsent.rows > 0 {
		s.Warnings = append(s.Warnings, name+": "+l.unsent.String())
	}
	for _, w := range l.warnings {
		s.Warnings = append(s.Warnings, name+": "+w)
	}
}

type spool struct {
	file        *os.File
	out         *bufio.Writer
	size, limit int64
}

func newSpool(limit int64) (*spool, error) {
	file, _, err := createSpool() // one that cannot be removed stays in the folder of temporary files
	if err != nil {
		return nil, err
	}
	return &spool{file: file, out: bufio.NewWriterSize(file, 256<<10), limit: limit}, nil
}

func (s *spool) write(line []byte) error {
	if s.size += int64(len(line)); s.size > s.limit {
		return fmt.Errorf("spool: want at most %d bytes, got more", s.limit)
	}
	if _, err := s.out.Write(line); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return nil
}
