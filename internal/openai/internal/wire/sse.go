package wire

import (
	"bytes"
	"errors"
)

// An Event is one data event of a stream, or a failure event without data.
type Event struct {
	Data    []byte // data lines joined by newlines, trimmed; valid until the next call of Next
	Named   bool   // has an event: line, so Data need not be a chunk
	Failed  bool   // event: error, or a field error
	Note    []byte // the last comment before the end of the event, where Dynamo puts the error text
	Arrival Arrival
}

// A Scanner splits a stream of server-sent events into events, at any split into reads. It copies only lines that a read
// left incomplete. As in the standard, lines end in LF, CRLF or CR, and the stream may begin with a byte order mark. Empty
// events, comments, and fields other than data, event and error are skipped.
type Scanner struct {
	begun   bool   // a line was read
	cr      bool   // the last byte was a CR, which ended a line: a following LF belongs to it
	line    []byte // beginning of an incomplete line
	joined  []byte // data lines of the current event that were copied
	single  []byte // its only data line, in the caller's buffer
	lines   int    // number of its data lines
	event   Event  // its other fields
	comment [NoteBytes]byte
}

// NoteBytes is the number of bytes of a comment that are kept.
const NoteBytes = 128

// maxEvent bounds a line and the data of an event, in bytes. The ids of a prompt of a million tokens, which vLLM
// repeats in an event of its own, have at most 8 bytes each.
const maxEvent = 8 << 20

// ErrEvent reports an event that is too long.
var ErrEvent = errors.New("an event of the stream is over 8 MiB")

// Reset prepares the Scanner for the next stream, and frees a buffer that a long event has grown.
func (s *Scanner) Reset() {
	const usual = 64 << 10
	if cap(s.line)+cap(s.joined) > usual {
		s.line, s.joined = nil, nil
	}
	s.line = s.line[:0]
	s.begun, s.cr = false, false
	s.joined, s.single, s.lines = s.joined[:0], nil, 0
	s.event = Event{}
}

// Next parses p, which arrived at a, up to the end of the next event. ok is false if p has no further end of an event. An
// event's arrival is that of its last data line, since the blank line after it has no content.
func (s *Scanner) Next(p []byte, a Arrival) (e Event, rest []byte, ok bool, err error) {
	if s.cr && len(p) > 0 {
		s.cr = false
		if p[0] == '\n' {
			p = p[1:]
		}
	}
	for {
		line, after, ok := s.cut(p)
		if !ok {
			break
		}
		p = after
		carried := len(s.line) > 0
		if carried {
			s.line = append(grown(s.line, len(line), maxEvent), line...)
			line = s.line
		}
		ended := s.field(s.first(line), carried, a)
		s.line = s.line[:0]
		if len(s.joined) > maxEvent {
			return Event{}, nil, false, ErrEvent
		}
		if ended {
			return s.pop(), p, true, nil
		}
	}
	if len(s.line)+len(p) > maxEvent {
		return Event{}, nil, false, ErrEvent
	}
	s.line = append(grown(s.line, len(p), maxEvent), p...)
	if s.single != nil { // the caller will reuse its buffer
		s.joined = append(s.joined[:0], s.single...)
		s.single = nil
	}
	return Event{}, nil, false, nil
}

// cut removes the first line from p, without its line end. ok is false if p has no line end.
func (s *Scanner) cut(p []byte) (line, after []byte, ok bool) {
	line = p
	i := bytes.IndexByte(p, '\n')
	if i >= 0 {
		line, after = p[:i], p[i+1:]
	}
	j := bytes.IndexByte(line, '\r')
	switch {
	case j < 0:
		return line, after, i >= 0
	case j+1 == i: // CRLF
		return line[:j], after, true
	}
	s.cr = j+1 == len(p)
	return line[:j], p[j+1:], true
}

// first removes the byte order mark from the first line of a stream.
func (s *Scanner) first(line []byte) []byte {
	if s.begun {
		return line
	}
	s.begun = true
	return bytes.TrimPrefix(line, []byte("\ufeff"))
}

// Rest returns an event that the end of the stream left incomplete: without its blank line, or without its line end.
func (s *Scanner) Rest(a Arrival) (Event, bool) {
	if len(s.line) > 0 {
		s.field(s.first(s.line), true, a)
		s.line = s.line[:0]
	}
	if s.field(nil, true, a) {
		return s.pop(), true
	}
	return Event{}, false
}

// pop returns the current event. Its data is valid until the next line is parsed.
func (s *Scanner) pop() Event {
	e := s.event
	s.lines, s.single, s.event = 0, nil, Event{}
	return e
}

// field parses one line. It reports whether an event is complete. Lines that are carried do not stay in the caller's
// buffer.
func (s *Scanner) field(line []byte, carried bool, a Arrival) (ended bool) {
	switch {
	case len(line) == 0:
		return s.blank()
	case line[0] == ':':
		s.event.Note = s.comment[:copy(s.comment[:], bytes.TrimSpace(line[1:]))]
	case bytes.HasPrefix(line, []byte("data")):
		if v, ok := afterColon(line[len("data"):]); ok {
			s.data(v, carried, a)
		}
	case bytes.HasPrefix(line, []byte("error")): // llama.cpp's own field
		if v, ok := afterColon(line[len("error"):]); ok {
			s.event.Failed = true
			s.data(v, carried, a)
		}
	case bytes.HasPrefix(line, []byte("event")):
		if name, ok := afterColon(line[len("event"):]); ok {
			name = bytes.TrimSpace(name)
			s.event.Failed = s.event.Failed || string(name) == "error"
			s.event.Named = len(name) > 0 && string(name) != "message"
		}
	}
	return false
}

// afterColon returns the value after a field's name. ok is false if the name is longer.
func afterColon(tail []byte) (v []byte, ok bool) {
	if len(tail) == 0 {
		return tail, true
	}
	if tail[0] != ':' {
		return nil, false
	}
	return bytes.TrimPrefix(tail[1:], []byte(" ")), true
}

func (s *Scanner) data(v []byte, carried bool, a Arrival) {
	s.lines++
	s.event.Arrival = a
	switch {
	case s.lines == 1 && !carried:
		s.single, s.joined = v, s.joined[:0]
	case s.lines == 1: // the first line stays in place, the next one is copied
		s.line, s.joined = s.joined[:0], s.line
		s.single = v
	default:
		if s.single != nil {
			s.joined = append(s.joined[:0], s.single...)
			s.single = nil
		}
		s.joined = append(s.joined, '\n')
		s.joined = append(s.joined, v...)
	}
}

// blank ends an event. An event without content is skipped.
func (s *Scanner) blank() bool {
	switch {
	case s.lines == 0:
	case s.single != nil:
		s.event.Data = bytes.TrimSpace(s.single)
	default:
		s.event.Data = bytes.TrimSpace(s.joined)
	}
	if len(s.event.Data) == 0 && !s.event.Failed {
		s.lines, s.single, s.event = 0, nil, Event{}
		return false
	}
	return true
}
