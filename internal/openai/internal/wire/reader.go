package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
)

// A Reader reads HTTP/1.1 answers from a connection, one after the other. The caller parses the head from Head. The Reader
// finds the body. Its buffer is reused for every answer.
type Reader struct {
	in    *bufio.Reader
	conn  *Conn
	frame frame
	taken int // bytes of the buffer that the last piece used
}

// NewReader returns a Reader with room for heads of up to size bytes.
func NewReader(size int) *Reader { return &Reader{in: bufio.NewReaderSize(nil, size)} }

// Reset begins an answer on c and discards buffered bytes of an earlier one.
func (r *Reader) Reset(c *Conn) {
	r.in.Reset(c)
	r.conn, r.frame, r.taken = c, frame{}, 0
}

// Head returns the buffer from which the caller reads a head.
func (r *Reader) Head() *bufio.Reader { return r.in }

// Room returns the size of the buffer, which bounds the head.
func (r *Reader) Room() int { return r.in.Size() }

// MakeRoom replaces the buffer by a larger one with the same content.
func (r *Reader) MakeRoom(size int) {
	begun, _ := r.in.Peek(r.in.Buffered())
	r.in = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(begun), r.conn), size)
}

// LooseHead takes a head off the buffer if its lines end in LF alone, as RFC 9112 lets a recipient accept, and returns
// it with CRLF. A parser that looks for CRLF would find the end of such a head in the body, or never. nil: the head has
// CRLF, or has not come to its end.
func (r *Reader) LooseHead() []byte {
	for {
		b, _ := r.in.Peek(r.in.Buffered())
		if http := []byte("HTTP/"); !bytes.HasPrefix(b, http[:min(len(b), len(http))]) {
			return nil // the parser refuses it at once
		}
		switch n := headEnd(b); {
		case n > 0 && bytes.HasSuffix(b[:n], []byte("\r\n\r\n")):
			return nil
		case n > 0:
			head := bytes.ReplaceAll(bytes.ReplaceAll(b[:n], []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
			_, _ = r.in.Discard(n) // cannot fail: the bytes are buffered
			return head
		}
		if _, err := r.in.Peek(len(b) + 1); err != nil { // the parser meets it again
			return nil
		}
	}
}

// OneLength takes a head off the buffer whose Content-Length stands in it several times with one value, and returns it with one such
// line, as RFC 9112, 6.3, lets a recipient do. nil: this is another head, or it is incomplete.
func (r *Reader) OneLength() (head []byte) {
	b, _ := r.in.Peek(r.in.Buffered())
	n := headEnd(b)
	var lengths []string
	for line := range bytes.Lines(b[:n]) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			for part := range strings.SplitSeq(string(value), ",") {
				lengths = append(lengths, strings.TrimSpace(part))
			}
		case len(bytes.TrimSpace(line)) == 0 && len(lengths) > 0:
			head = append(append(append(head, "Content-Length: "...), lengths[0]...), "\r\n\r\n"...)
		default:
			head = append(head, line...)
		}
	}
	if len(lengths) < 2 || slices.ContainsFunc(lengths, func(l string) bool { return l != lengths[0] }) {
		return nil
	}
	_, _ = r.in.Discard(n) // cannot fail: the bytes are buffered
	return head
}

// headEnd returns the length of a head with its empty line; 0: it is incomplete.
func headEnd(b []byte) int {
	for i := 0; ; {
		n := bytes.IndexByte(b[i:], '\n') + 1
		if n == 0 {
			return 0
		}
		if line := b[i : i+n]; i > 0 && (len(line) == 1 || string(line) == "\r\n") {
			return i + n
		}
		i += n
	}
}

// Begins waits for the first byte of the body and returns it, but leaves it in the buffer. 0: none has come.
func (r *Reader) Begins() byte {
	for n := 1; ; n = r.in.Buffered() + 1 {
		if _, err := r.in.Peek(n); err != nil { // Fill meets it again
			return 0
		}
		b, _ := r.in.Peek(r.in.Buffered())
		f := r.frame
		data, _, err := f.next(b)
		switch {
		case len(data) > 0:
			return data[0]
		case err != nil || f.ended:
			return 0
		}
	}
}

// Front returns at most n of the buffered bytes.
func (r *Reader) Front(n int) []byte {
	b, _ := r.in.Peek(min(r.in.Buffered(), n))
	return b
}

// Body begins a body of the length in its head: -1 for chunked, less than -1 for none.
func (r *Reader) Body(length, status int) { r.frame.reset(length, status) }

// Ended reports whether the body is complete.
func (r *Reader) Ended() bool { return r.frame.ended }

// ToClose reports whether only the end of the connection ends the body.
func (r *Reader) ToClose() bool { return r.frame.mode == byClose }

// Clean reports whether the body is complete and the buffer has no bytes after it.
func (r *Reader) Clean() bool { return r.frame.ended && r.in.Buffered() == 0 }

// Fill waits for bytes if the buffer is empty, with one read of the connection.
func (r *Reader) Fill() error {
	_, err := r.in.Peek(1)
	return err
}

// Piece returns the next buffered piece of the body, which can be empty. It is valid until the next Fill. ok is false at
// the end of the buffer or of the body.
func (r *Reader) Piece() (data []byte, ok bool, err error) {
	_, _ = r.in.Discard(r.taken) // cannot fail: the bytes are buffered
	r.taken = 0
	n := r.in.Buffered()
	if n == 0 || r.frame.ended {
		return nil, false, nil
	}
	b, _ := r.in.Peek(n)
	data, rest, err := r.frame.next(b)
	if err != nil {
		return nil, false, err
	}
	r.taken = n - len(rest)
	return data, true, nil
}

// ErrLong reports a body that is longer than the bound.
var ErrLong = errors.New("the body is too long")

// All reads the rest of the body into dst, which is empty. It returns the arrival of the last bytes. If the body is longer
// than most bytes, the error is ErrLong. Other errors are ErrChunked or the connection's.
func (r *Reader) All(dst []byte, most int) (body []byte, a Arrival, err error) {
	body = dst
	for !r.frame.ended {
		if err := r.Fill(); err != nil {
			if r.ToClose() && errors.Is(err, io.EOF) {
				err = nil
			}
			return body, a, err
		}
		for {
			data, ok, err := r.Piece()
			if err != nil {
				return body, a, err
			}
			if !ok {
				break
			}
			if len(body)+len(data) > most {
				return append(body, data[:most-len(body)]...), a, ErrLong
			}
			if len(data) > 0 {
				body, a = append(grown(body, len(data), most), data...), r.conn.Last
			}
		}
	}
	return body, a, nil
}
