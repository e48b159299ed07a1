package wire

import (
	"errors"
	"strings"
)

// A frame finds the body in the bytes of an HTTP/1.1 answer, at any split into reads (RFC 9112, section 6).
//
// fasthttp's own body reader has one disadvantage: it returns a chunk only after it has read the line end behind the chunk,
// and does not say which read a byte came from. If the chunk and its line end arrive apart, the chunk would get the later
// time.
type frame struct {
	mode  framing
	state chunkState
	left  int64 // remaining bytes of the body or of the chunk
	line  int   // bytes since the last chunk, or of its size line
	digit bool  // the size line has a digit
	ended bool  // the body is complete
}

type framing uint8

const (
	byLength framing = iota
	byChunks
	byClose // until the end of the connection
)

type chunkState uint8

const (
	sizeDigits chunkState = iota
	sizeBlanks            // white space after the digits
	sizeRest              // extensions
	sizeLF
	chunkData
	chunkCR
	chunkLF
	trailerStart // at the start of a trailer line
	trailerRest
	trailerLF // after the CR of the empty line
)

const (
	maxChunkBytes = 1 << 40
	maxDigits     = 16       // of a chunk size, including leading zeros, as in net/http
	maxAround     = 16 << 10 // bytes of a size line, or of all trailers

	hexDigits = "0123456789abcdef0123456789ABCDEF" // the value of each is its place modulo 16
)

// ErrChunked reports an invalid chunked body.
var ErrChunked = errors.New("broken chunked encoding")

// reset takes the body length as fasthttp returns it: -1 for chunked, less than -1 for none.
func (f *frame) reset(length int, status int) {
	*f = frame{}
	switch {
	case status == 204 || status == 304: // these never have a body
		f.ended = true
	case length == -1:
		f.mode = byChunks
	case length < 0:
		f.mode = byClose
	default:
		f.left = int64(length)
		f.ended = length == 0
	}
}

// next removes the next piece of the body from the front of p. data can be empty while rest is not: the caller calls next
// again until rest is empty or the body has ended.
func (f *frame) next(p []byte) (data, rest []byte, err error) {
	switch f.mode {
	case byClose:
		return p, nil, nil
	case byLength:
		data, rest = f.cut(p)
		f.ended = f.left == 0
		return data, rest, nil
	}
	for len(p) > 0 && !f.ended {
		if f.state == chunkData {
			data, rest = f.cut(p)
			if f.left == 0 {
				f.state = chunkCR
			}
			return data, rest, nil
		}
		if err := f.step(p[0]); err != nil {
			return nil, nil, err
		}
		p = p[1:]
	}
	return nil, p, nil
}

func (f *frame) cut(p []byte) (data, rest []byte) {
	n := int(min(f.left, int64(len(p))))
	f.left -= int64(n)
	return p[:n], p[n:]
}

// step consumes one byte between chunks.
func (f *frame) step(c byte) error {
	f.line++
	if f.line > maxAround {
		return ErrChunked
	}
	switch f.state {
	case sizeDigits:
		if v := strings.IndexByte(hexDigits, c); v >= 0 {
			f.left, f.digit = f.left<<4|int64(v%16), true
			if f.left > maxChunkBytes || f.line > maxDigits {
				return ErrChunked
			}
			return nil
		}
		if !f.digit {
			return ErrChunked
		}
		if c == ';' {
			f.state = sizeRest
			return nil
		}
		f.state = sizeBlanks
		return f.blank(c)
	case sizeBlanks:
		return f.blank(c)
	case sizeRest:
		switch c {
		case '\r':
			f.state = sizeLF
		case '\n':
			return ErrChunked
		}
	case sizeLF:
		f.state = chunkData
		if f.left == 0 {
			f.state = trailerStart
		}
		return f.newline(c)
	case chunkCR:
		f.state = chunkLF
		if c != '\r' {
			return ErrChunked
		}
	case chunkLF:
		f.state, f.digit = sizeDigits, false
		return f.newline(c)
	case trailerStart:
		f.state = trailerRest
		if c == '\r' {
			f.state = trailerLF
		}
	case trailerRest:
		if c == '\n' {
			f.state = trailerStart // line counts on: it bounds the sum of all trailers
		}
	case trailerLF:
		f.ended = c == '\n'
		return f.newline(c)
	}
	return nil
}

// blank consumes a byte after the digits of a chunk size. No extension may follow white space there: RFC 9112 allows it
// only to bad senders, and net/http refuses it.
func (f *frame) blank(c byte) error {
	switch c {
	case ' ', '\t':
		return nil
	case '\r':
		f.state = sizeLF
		return nil
	}
	return ErrChunked
}

func (f *frame) newline(c byte) error {
	f.line = 0
	if c != '\n' {
		return ErrChunked
	}
	return nil
}
