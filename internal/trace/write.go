package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// WriterOptions say of all rows what a Writer must know before the first.
type WriterOptions struct {
	Untimed     bool // rows have no times of their own: their Offset is not written
	Sessions    bool // BurstGPT: the columns of the files that have a Session ID
	BlockTokens int  // tokens of a block of Record.Blocks; 0: 512
}

// A Writer writes rows in one of the formats Mooncake, Azure, BurstGPT and VLLM. Offsets are written as times since the
// start, Azure's as dates since 1970. What a format has no place for is left out and counted: see Warnings.
//
// What Mooncake's rows hold comes back as it was when it is read. Not among it are Line, Turn, Parts, Gap and Pass, and
// Number where rows are written in another order than they were read.
type Writer struct {
	out     *bufio.Writer
	format  Format
	options WriterOptions

	line  []byte
	text  bytes.Buffer
	rows  int
	given int    // rows that were given, whether they could be written or not
	fresh uint64 // ids that were made up
	lost  []loss
}

// A loss is something that was not written as it was, in how many rows, and why.
type loss struct {
	what, why string
	rows      int
}

// NewWriter returns a Writer, and an error where the format is none that can be written, or needs times that rows have not.
// Close must be called at the end; it does not close out.
func NewWriter(out io.Writer, format Format, o WriterOptions) (*Writer, error) {
	if o.BlockTokens == 0 {
		o.BlockTokens = blockSizes[0]
	}
	w := &Writer{out: bufio.NewWriterSize(out, 64<<10), format: format, options: o}
	switch format {
	case Mooncake:
	case Azure, BurstGPT, VLLM:
		if o.Untimed {
			return nil, fmt.Errorf("format %s: want rows with timestamps, got a trace without", format)
		}
	default:
		return nil, fmt.Errorf("format to write: want mooncake, azure, burstgpt or vllm, got %q", string(format))
	}
	switch {
	case format == Azure:
		w.line = append(w.line, azureHeader...)
	case format == BurstGPT && o.Sessions:
		w.line = append(w.line, burstSessions...)
	case format == BurstGPT:
		w.line = append(w.line, burstHeader...)
	default:
		return w, nil
	}
	return w, w.end()
}

// Write writes one row, or counts it where the format cannot hold it at all.
func (w *Writer) Write(r *Record) error {
	w.given++
	if w.format != Mooncake && (r.InputTokens == 0 || r.OutputTokens == 0) {
		w.lose("left out", string(w.format)+"'s rows have an input and an output length")
		return nil
	}
	w.line = w.line[:0]
	var err error
	switch w.format {
	case Mooncake:
		err = w.mooncake(r)
	case Azure:
		w.azure(r)
	case BurstGPT:
		err = w.burst(r)
	default:
		w.vllm(r)
	}
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

// Rows is how many were written.
func (w *Writer) Rows() int { return w.rows }

// Close writes what is still in memory. Its error is ErrNoRows where nothing was written.
func (w *Writer) Close() error {
	if w.rows == 0 {
		return fmt.Errorf("%w: %d were given to write as %s", ErrNoRows, w.given, w.format)
	}
	return w.out.Flush()
}

// ErrNoRows is in the error of Close when there was nothing to write: a trace has at least one row.
var ErrNoRows = errors.New("want at least one row, got none")

// Warnings say what was changed or lost when rows were written: a line for each kind, with the number of rows.
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

// without counts what the row has and the format has no place for.
func (w *Writer) without(r *Record, fields ...string) {
	for _, field := range fields {
		has := false
		switch field {
		case "hash_ids":
			has = len(r.Blocks) > 0
		case "session_id":
			has = r.Session != ""
		case "delay":
			has = r.Delay != 0
		case "gap":
			has = r.Gap != 0
		case "parts":
			has = r.Parts != nil
		case "extra":
			has = r.Extra != nil
		}
		if has {
			w.lose("left out "+field+" of", string(w.format)+" has no place for it")
		}
	}
}

// value appends a key and a JSON value that is already written, on one line.
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

// key begins a field of a JSON object: the line is never empty after the first.
func (w *Writer) key(key string) {
	open := byte(',')
	if len(w.line) == 0 {
		open = '{'
	}
	w.line = append(append(append(w.line, open, '"'), key...), '"', ':')
}
