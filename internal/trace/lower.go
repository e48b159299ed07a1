package trace

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"slices"
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

	settle  func() // sets the parents of all rows at the end; nil: they are known
	waiting *spool
	writer  Writer // formats the lines
	rows    []lowered
	parents []Edge
	names   []subAgent        // of rows whose session is known only at the end
	untimed int               // requests without the time of their answer
	ids     map[string]string // by session id: the file and line of the session
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
	waiting, err := newSpool(o)
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
	if r.Floating {
		r.Offset = 0
		for _, e := range r.After {
			r.Offset = max(r.Offset, later(time.Duration(l.rows[e.Row].at), e.Wait))
		}
	}
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

// placed sets the Offset of rows that float. It reports whether all are within the instants that a trace can have.
func placed(rows []Record) bool {
	for i := range rows {
		r := &rows[i]
		if r.Floating {
			r.Offset = 0
			for _, e := range r.After {
				r.Offset = max(r.Offset, later(rows[e.Row].Offset, e.Wait))
			}
		}
		if r.Offset >= maxNanos {
			return false
		}
	}
	return true
}

// later returns at + d, or maxNanos if that is less.
func later(at, d time.Duration) time.Duration {
	if d >= maxNanos-at {
		return maxNanos
	}
	return at + d
}

// finish writes the trace. It returns the faults of the sessions, if there are any.
func (l *lowering) finish(ctx context.Context, name string) (trace *os.File, err error) {
	defer func() { err = errors.Join(err, l.waiting.file.Close()) }()
	l.faults.name = name
	if err := l.faults.err(); err != nil {
		return nil, err
	}
	if l.settle != nil {
		l.settle()
	}
	if len(l.rows) == 0 {
		return nil, fmt.Errorf("%s: want at least one row, got none", name)
	}
	l.sha = hex.EncodeToString(l.digest.Sum(nil))
	if err := l.waiting.out.Flush(); err != nil {
		return nil, err
	}
	out, err := newSpool(l.options)
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
	order := make([]int, len(l.rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch at, other := l.rows[a].at, l.rows[b].at; {
		case at < other:
			return -1
		case at > other:
			return 1
		}
		return 0
	})
	place := make([]int, len(order))
	for i, of := range order {
		place[of] = i
	}
	line := fmt.Appendf(nil, `{"schema":"%s","block_size":%d}`+"\n", sessionsSchema, l.block)
	err := out.write(line)
	if err != nil {
		return err
	}
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
		line = appendPlace(line[:0], i, after)
		if !r.floating {
			line = appendUnits(append(line, `,"timestamp":`...), time.Duration(r.at), time.Millisecond)
		}
		if r.name > 0 {
			if line, err = appendName(line, l.names[r.name-1]); err != nil {
				return err
			}
		}
		line = append(line, ',')
		head := len(line)
		line = slices.Grow(line, int(r.bytes))[:head+int(r.bytes)-1]
		if _, err := l.waiting.file.ReadAt(line[head:], r.start+1); err != nil { // without its opening brace
			return fmt.Errorf("spool: %w", err)
		}
		if len(line) >= MaxLineBytes {
			return fmt.Errorf("row %d: want a line of at most %d bytes, got %d", i, MaxLineBytes, len(line)+1)
		}
		if err := out.write(append(line, '\n')); err != nil {
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
}

// appendName appends the session of a row and its sub-agent.
func appendName(line []byte, name subAgent) ([]byte, error) {
	session, err := json.Marshal(name.session)
	line = append(append(line, `,"session_id":`...), session...)
	if err != nil || name.agent == "" {
		return line, err
	}
	agent, err := json.Marshal(name.agent)
	return append(append(line, `,"agent_id":`...), agent...), err
}

// A spool is a temporary file of limited size. It has no name and so cannot outlive the process, where the system allows that.
type spool struct {
	file        *os.File
	out         *bufio.Writer
	size, limit int64
}

func newSpool(o *Options) (*spool, error) {
	file, err := os.CreateTemp(o.TempDir, "replayd-trace-*")
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	_ = os.Remove(file.Name()) // else it stays in the folder of temporary files
	return &spool{file: file, out: bufio.NewWriterSize(file, 256<<10), limit: o.MaxSpoolBytes}, nil
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

// source returns a reader of one source, decompressed. What is read through it counts as content of the trace.
func (l *lowering) source(in io.Reader) io.Reader {
	return io.TeeReader(&counting{in, &l.bytes}, l.digest)
}

type counting struct {
	in    io.Reader
	bytes *int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	*c.bytes += int64(n)
	return n, err
}
