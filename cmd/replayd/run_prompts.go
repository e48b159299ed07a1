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

	"replayd/internal/number"
	"replayd/internal/replay"
	"replayd/internal/trace"
)

// A promptFile is a trace of the requests that were sent: it replays to the same bodies, byte for byte, in the plan's order.
// A lane writes its request's line while it waits for the answer, whose times are the kernel's: so nothing is lost to a slow
// disk, and nothing is measured of it. Rows that are due together go out over several connections, and their lines come
// in any order: close sorts them.
type promptFile struct {
	path  string
	timed bool // the plan has instants

	mu     sync.Mutex
	file   *os.File
	lines  []savedLine // as they stand in the file
	size   int64       // of the file, in bytes
	long   int         // requests that no line of a trace can hold
	failed error       // the first that went wrong; nothing is written after it
}

// A savedLine is where a request stands in the file, and where it belongs.
type savedLine struct {
	due        time.Time
	pass       int64
	row        int
	from, size int64 // bytes
}

// savedRow is what a line, in Mooncake's form, begins with.
type savedRow struct {
	Timestamp *float64 `json:"timestamp,omitempty"` // ms
	Session   string   `json:"session_id,omitempty"`
	Delay     float64  `json:"delay,omitempty"` // ms
	Text      string   `json:"text_input,omitempty"`
	Output    int      `json:"output_length,omitempty"`
}

// openPrompts makes the file anew.
func (a *account) openPrompts() error {
	if a.order.SavePrompts == "" {
		return nil
	}
	f, err := os.Create(a.order.SavePrompts)
	if err != nil {
		return fmt.Errorf("--save-prompts: %w", err)
	}
	a.prompts = &promptFile{path: a.order.SavePrompts, file: f, timed: a.order.Config.Workloads[0].Arrival != "concurrency"}
	return nil
}

// saved takes each request that was sent; nil when prompts are not saved.
func (a *account) saved() func(replay.Sent) {
	if a.prompts == nil {
		return nil
	}
	return a.prompts.add
}

// add writes one request.
func (p *promptFile) add(s replay.Sent) {
	var body struct {
		Messages json.RawMessage `json:"messages"`
		Tools    json.RawMessage `json:"tools"`
		Prompt   json.RawMessage `json:"prompt"`
	}
	row := savedRow{Session: s.Due.Session, Delay: milliseconds(s.Due.Delay), Output: s.Due.OutputTokens}
	if p.timed {
		at := milliseconds(s.Offset)
		row.Timestamp = &at
	}
	extra, payload := s.Due.Extra, []byte(nil)
	err := json.Unmarshal(s.Body, &body)
	if s.Due.Payload != nil || err != nil || body.Messages == nil && json.Unmarshal(body.Prompt, &row.Text) != nil {
		row.Text, row.Output, extra, payload = "", 0, nil, s.Body
		body.Messages, body.Tools = nil, nil
	}
	line, err := json.Marshal(row)
	if err != nil { // of text and finite numbers there is none
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

// appendRaw adds a field whose JSON stays as it is, blanks included: a body that is made of it is the same to the byte.
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
	var one bytes.Buffer // it would be two lines
	if json.Compact(&one, raw) != nil {
		return append(line, "null"...)
	}
	return append(line, one.Bytes()...)
}

// close ends the file, and says what is not in it. Nothing is added any more.
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
	return trace.Replace(p.path, func(w io.Writer) error {
		var errs []error
		for _, l := range p.lines {
			_, err := io.Copy(w, io.NewSectionReader(p.file, l.from, l.size))
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
