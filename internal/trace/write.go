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
	BlockTokens int  // tokens of a block of Record.Blocks; 0: 512
}

// A Writer writes rows as Mooncake or Sessions, with an Offset as the time since the start. It leaves out and counts
// whatever the format has no place for: see Warnings.
//
// A row that is written as Sessions is read back unchanged, except for Line, Turn, Parts and Pass, and for Number if rows are
// written in another order than they were read. As Mooncake it also loses Gap, Agent and After.
type Writer struct {
	out     *bufio.Writer
	format  Format
	options WriterOptions
	row     func(*Record) error // appends one to line

	line []byte
	text bytes.Buffer
	rows int
	// by Record.Number: the position of a row in the file, from 1; 0: not written; only for Sessions
	position []int
	lost     []loss
}

// A loss is one kind of change or omission, the reason for it, and the number of rows that it affects.
type loss struct {
	what, why string
	rows      int
}

// NewWriter returns a Writer. It fails if the format cannot be written. The caller must call Close at the end; Close
// does not close out.
func NewWriter(out io.Writer, format Format, o WriterOptions) (*Writer, error) {
	o.BlockTokens = cmp.Or(o.BlockTokens, blockSizes[0])
	w := &Writer{out: bufio.NewWriterSize(out, 64<<10), format: format, options: o}
	switch format {
	case Mooncake:
		w.row = func(r *Record) error {
			w.without("parts", r.Parts != nil)
			w.without("gap", r.Gap != 0)
			w.without("agent_id", r.Agent != "")
			w.without("after", r.After != nil)
			return w.mooncake(r, !w.options.Untimed)
		}
		return w, nil
	case Sessions:
		w.row = w.sessions
		w.line = fmt.Appendf(w.line, `{"schema":"%s","block_size":%d}`, sessionsSchema, o.BlockTokens)
		return w, w.end()
	}
	return nil, fmt.Errorf("format to write: want %s, got %q", spelling.Or(Writable), string(format))
}

// Write writes one row.
func (w *Writer) Write(r *Record) error {
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

// Close flushes the buffer. The error is ErrNoRows if no row was written.
func (w *Writer) Close() error {
	if w.rows == 0 {
		return ErrNoRows
	}
	return w.out.Flush()
}

// ErrNoRows is the error of Close if no row was written: a trace has at least one row.
var ErrNoRows = errors.New("want at least one row, got none")

// Warnings lists what was changed or lost in writing: one line for each kind, with its number of rows.
func (w *Writer) Warnings() []string {
	var list []string
	for _, l := range w.lost {
		list = append(list, fmt.Sprintf("%s %d of %d rows: %s", l.what, l.rows, w.rows, l.why))
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

// without counts a row that has a field for which the format has no place.
func (w *Writer) without(field string, has bool) {
	if has {
		w.lose("left out "+field+" of", string(w.format)+" has no place for it")
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
