package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"replayd/internal/file"
	"replayd/internal/number"
	"replayd/internal/replay"
	"replayd/internal/trace"
)

// A promptFile is a trace of the requests that were sent. It replays to the same bodies, byte for byte, in the plan's
// order. A lane writes the line of its request while it waits for the answer. Times of the answer are the kernel's, so
// a slow disk loses no line and does not distort the measurement. Rows that are due together are sent over several
// connections and their lines come in any order, so close sorts the lines.
type promptFile struct {
	path  string
	timed bool // the plan has instants

	mu     sync.Mutex
	file   *os.File
	lines  []savedLine // in the file's order
	size   int64       // of the file, in bytes
	long   int         // requests too long for a line of a trace
	failed error       // the first error; nothing is written after it
}

// A savedLine is the position of a request in the file and in the plan.
type savedLine struct {
	due        time.Time
	pass       int64
	row        int
	from, size int64 // bytes
}

// savedRow is the beginning of a line in Mooncake's format.
type savedRow struct {
	Timestamp *float64 `json:"timestamp,omitempty"` // ms
	Session   string   `json:"session_id,omitempty"`
	Delay     float64  `json:"delay,omitempty"` // ms
	Text      string   `json:"text_input,omitempty"`
	Output    int      `json:"output_length,omitempty"`
}

func (a *account) openPrompts() error {
	if a.order.SavePrompts == "" {
		return nil
	}
	f, err := file.Overwrite(a.order.SavePrompts)
	if err != nil {
		return fmt.Errorf("--save-prompts: %w", err)
	}
	a.prompts = &promptFile{path: a.order.SavePrompts, file: f, timed: !a.order.Config.Workloads[0].Closed()}
	return nil
}

func (p *promptFile) add(s replay.Sent) {
	var body struct {
		Messages json.RawMessage `json:"messages"`
		Tools    json.RawMessage `json:"tools"`
		Prompt   json.RawMessage `json:"prompt"`
	}
	row := savedRow{Session: s.Due.Session, Delay: milliseconds(s.Due.Delay), Output: s.Due.OutputTokens}
	if p.timed {
		row.Timestamp = new(milliseconds(s.Offset))
	}
	extra, payload := s.Due.Extra, []byte(nil)
	err := json.Unmarshal(s.Body, &body)
	if s.Due.Payload != nil || err != nil || body.Messages == nil && json.Unmarshal(body.Prompt, &row.Text) != nil {
		row.Text, row.Output, extra, payload = "", 0, nil, s.Body
		body.Messages, body.Tools = nil, nil
	}
	line, err := json.Marshal(row)
	if err != nil { // impossible with text and finite numbers
		return
	}
	line = line[:len(line)-1]
	for _, f := range []struct {
		name string
		raw  json.RawMessage
	}{{"messages", body.Messages}, {"tools", body.Tools}, {"payload", payload}, {"extra", extra}} {
		line = appendRaw(line, f.name, f.raw)
	}
	line = append(line, '}', '\n')
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(line) > trace.MaxLineBytes {
		p.long++
		return
	}
	if p.failed == nil {
		_, p.failed = p.file.Write(line)
	}
	at := savedLine{due: s.Due.At, pass: s.Due.Passes(), row: s.Due.Number, from: p.size, size: int64(len(line))}
	p.lines, p.size = append(p.lines, at), p.size+at.size
}

// appendRaw appends a field and keeps its JSON as it is, blanks included, so that the replayed body is the same to the
// byte.
func appendRaw(line []byte, name string, raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return line
	}
	if line[len(line)-1] != '{' {
		line = append(line, ',')
	}
	line = append(append(append(line, '"'), name...), '"', ':')
	if bytes.IndexByte(raw, '\n') < 0 {
		return append(line, raw...)
	}
	var one bytes.Buffer // newlines would split the line
	if json.Compact(&one, raw) != nil {
		return append(line, "null"...)
	}
	return append(line, one.Bytes()...)
}

// close completes the file and reports the requests that are not in it. No request may be added after it.
func (p *promptFile) close() error {
	defer p.file.Close()
	if p.failed != nil {
		return fmt.Errorf("--save-prompts: %w", p.failed)
	}
	if p.long > 0 {
		return errors.Join(fmt.Errorf("--save-prompts: %s left out: a line of a trace has at most %d bytes", number.Count(p.long, "request"), trace.MaxLineBytes), p.sort())
	}
	return p.sort()
}

// sort puts the lines in the plan's order.
func (p *promptFile) sort() error {
	inOrder := func(a, b savedLine) int {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.pass, b.pass), cmp.Compare(a.row, b.row))
	}
	if slices.IsSortedFunc(p.lines, inOrder) {
		return p.file.Close()
	}
	slices.SortFunc(p.lines, inOrder)
	return file.Replace(p.path, func(w io.Writer) error {
		var errs []error
		for _, l := range p.lines {
			_, err := io.Copy(w, io.NewSectionReader(p.file, l.from, l.size))
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
