package trace

import (
	"errors"
	"fmt"
	"io"

	"replayd/internal/fault"
)

// errNoPlace is the error of Reread for a row of a file without After.
var errNoPlace = errors.New("want a row that names its parents, got one that does not")

// Reread returns a row of the file, which has After, again with all that Shed removed. Its lengths stay those of r, where they were
// cut. The error wraps ErrChanged if the file changed after Open checked it. Several goroutines may reread at once.
func (f *File) Reread(r Record) (Record, error) {
	if r.Number >= len(f.starts) {
		return r, fmt.Errorf("%s:%d: %w", f.name, r.Line, errNoPlace)
	}
	if err := f.unchanged(); err != nil {
		return r, err
	}
	var again row
	if err := f.line(r.Number, r.Line, &again); err != nil {
		return r, err
	}
	if r.Blocks = again.Blocks[:min(len(again.Blocks), blocksOf(again.InputTokens, f.Stats.BlockTokens))]; len(r.Blocks) == 0 {
		r.Blocks = nil
	}
	r.Text, r.Messages, r.Tools, r.Payload, r.Extra, r.Headers = again.Text, again.Messages, again.Tools, again.Payload, again.Extra, again.Headers
	return r, nil
}

func (f *File) line(number, line int, into *row) error {
	start := f.starts[number]
	in := newLines(io.NewSectionReader(f.data, start, f.size-start), start, line-1)
	in.tabs = f.tabs
	text, err := in.next()
	if err != nil {
		return fmt.Errorf("%s:%d: %w", f.name, line, err)
	}
	return f.complete(f.decode(text, into), number, line, into)
}

// complete fills in the place of a row that was decoded again, and its session where other rows tell it.
func (f *File) complete(found fault.List, number, line int, into *row) error {
	into.Number, into.Line = number, line
	if len(found) > 0 {
		return f.changed(line, found[0])
	}
	if f.chats != nil {
		f.chats.find(into)
	}
	return nil
}

func (f *File) changed(line int, what fault.Fault) error {
	return fmt.Errorf("%s:%d: %w: %s", f.name, line, ErrChanged, what.Error())
}
