package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"replayd/internal/spelling"
)

// WriterOptions describe the rows. A Writer needs them before the first row.
type WriterOptions struct {
	Untimed     bool // rows have no timestamps: Offset is not written
	Sessions    bool // BurstGPT only: write the columns of the files that have a Session ID
	BlockTokens int  // tokens of a block of Record.Blocks; 0: 512
}

// A Writer writes rows as Mooncake, Azure, BurstGPT, VLLM, Sessions or AgenticMooncake. It writes an Offset as the time since the start, in Azure
// as a date since 1970. It leaves out and counts whatever the format has no place for: see Warnings.
//
// A row that is written as Sessions is read back unchanged, except for Line, Turn, Parts and Pass, and for Number if rows are
// written in another order than they were read. As Mooncake it also loses Gap, Agent and After.
type Writer struct {
	out     *bufio.Writer
	format  Format
	options WriterOptions
	row     func(*Record) error // appends one to line
	needs   string              // of a row that can be written; "": nothing

	line  []byte
	text  bytes.Buffer
	rows  int
	given int // rows passed to Write, written or not
	// by Record.Number: the position of a row in the file, from 1; 0: not written; only for formats with parents
	position []int
	turns    map[string]int  // by session: the position of its latest row; only for AgenticMooncake, like the next two
	agents   []string        // by position
	begun    map[string]bool // by agent: it has a row
	fresh    uint64          // number of ids made up
	lost     []loss
}

// A loss is one kind of change or omission, the reason for it, and the number of rows that it affects.
type loss struct {
	what, why string
	rows      int
}

// NewWriter returns a Writer. It fails if the format cannot be written, or if the format needs timestamps and the rows
// have none. The caller must call Close at the end; Close does not close out.
func NewWriter(out io.Writer, format Format, o WriterOptions) (*Writer, error) {
	o.BlockTokens = cmp.Or(o.BlockTokens, blockSizes[0])
	w := &Writer{out: bufio.NewWriterSize(out, 64<<10), format: format, options: o}
	switch w.rowsOf(format); {
	case w.row == nil:
		return nil, fmt.Errorf("format to write: want %s, got %q", spelling.Or(Writable), string(format))
	case w.needs == twoLengths && o.Untimed:
		return nil, fmt.Errorf("format %s: want rows with timestamps, got a trace without", format)
	case len(w.line) == 0:
		return w, nil
	}
	return w, w.end()
}

// twoLengths wants the two lengths of a row, for formats with times.
const twoLengths = "an input and an output length"

// rowsOf sets what writes a row, and makes the line the header.
func (w *Writer) rowsOf(format Format) {
	block := w.options.BlockTokens
	switch format {
	case Mooncake:
		w.row = func(r *Record) error {
			w.without(r, "parts", "gap", "agent_id", "after")
			return w.mooncake(r, !w.options.Untimed)
		}
	case Sessions:
		w.row = w.sessions
		w.line = fmt.Appendf(w.line, `{"schema":"%s","block_size":%d}`, sessionsSchema, block)
	case AgenticMooncake:
		w.row, w.needs = w.agentic, "an input length"
		w.line = fmt.Appendf(w.line, `{"schema":"%s","version":%d,"block_size":%d,`, agenticSchema, agenticVersion, block)
		w.line = append(w.line, `"hash_id_scope":"local","source":{"format":"replayd","digest":""}}`...)
	case Azure:
		w.row, w.needs, w.line = w.azure, twoLengths, []byte(azureHeader)
	case BurstGPT:
		w.row, w.needs, w.line = w.burst, twoLengths, []byte(burstHeader)
		if w.options.Sessions {
			w.line = []byte(burstSessions)
		}
	case VLLM:
		w.row, w.needs = w.vllm, twoLengths
	}
}

// Write writes one row. It only counts a row that the format cannot hold at all.
func (w *Writer) Write(r *Record) error {
	w.given++
	if w.needs != "" && r.InputTokens == 0 || w.needs == twoLengths && r.OutputTokens == 0 {
		w.lose("left out", string(w.format)+"'s rows have "+w.needs)
		return nil
	}
	w.line = w.line[:0]
	err := w.row(r)
	if err == nil && len(w.line) >= MaxLineBytes {
		err = fmt.Errorf("want a line of at most %d bytes, got %d", MaxLineBytes, len(w.line)+1)
	}
	if err != nil {
		return fmt.Errorf("row %d: %w", r.Number, err)
	}
	w.rows++
	return w.end()
}

func (w *Writer) end() error {
	_, err := w.out.Write(append(w.line, '\n'))
	return err
}

// Rows returns the number of rows written.
func (w *Writer) Rows() int { return w.rows }

// Close flushes the buffer. The error wraps ErrNoRows if no row was written.
func (w *Writer) Close() error {
	if w.rows == 0 {
		return fmt.Errorf("%w: %d were given to write as %s", ErrNoRows, w.given, w.format)
	}
	return w.out.Flush()
}

// ErrNoRows is wrapped by the error of Close if no row was written: a trace has at least one row.
var ErrNoRows = errors.New("want at least one row, got none")

// Warnings lists what was changed or lost in writing: one line for each kind, with its number of rows.
func (w *Writer) Warnings() []string {
	var list []string
	for _, l := range w.lost {
		list = append(list, fmt.Sprintf("%s %d of %d rows: %s", l.what, l.rows, w.given, l.why))
	}
	return list
}

func (w *Writer) lose(what, why string) {
	for i := range w.lost {
		if w.lost[i].what == what {
			w.lost[i].rows++
			return
		}
	}
	w.lost = append(w.lost, loss{what, why, 1})
}

// without counts the fields that the row has and the format has no place for.
func (w *Writer) without(r *Record, fields ...string) {
	has := map[string]bool{
		"hash_ids": len(r.Blocks) > 0, "session_id": r.Session != "", "delay": r.Delay != 0, "gap": r.Gap != 0,
		"parts": r.Parts != nil, "extra": r.Extra != nil, "agent_id": r.Agent != "", "after": r.After != nil,
	}
	for _, field := range fields {
		if has[field] {
			w.lose("left out "+field+" of", string(w.format)+" has no place for it")
		}
	}
}

// value appends a key and an encoded JSON value on one line.
func (w *Writer) value(key string, v json.RawMessage) error {
	if v == nil {
		return nil
	}
	w.text.Reset()
	if err := json.Compact(&w.text, v); err != nil {
		return fmt.Errorf("%s: want JSON, got %w", key, err)
	}
	if bytes.ContainsAny(v, "\r\n") {
		v = w.text.Bytes()
	}
	w.key(key)
	w.line = append(w.line, v...)
	return nil
}

func (w *Writer) string(key, s string) error {
	if s == "" {
		return nil
	}
	w.text.Reset()
	enc := json.NewEncoder(&w.text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	w.key(key)
	w.line = append(w.line, bytes.TrimSpace(w.text.Bytes())...)
	return nil
}

// key begins a field of a JSON object. Only before the first field is the line empty.
func (w *Writer) key(key string) {
	open := byte(',')
	if len(w.line) == 0 {
		open = '{'
	}
	w.line = append(append(append(w.line, open, '"'), key...), '"', ':')
}
