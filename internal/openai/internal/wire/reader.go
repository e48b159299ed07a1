package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// A Reader reads HTTP/1.1 answers from a connection, one after the other. The caller parses the head from Head; the Reader frames the
// body. Its buffer is reused for every answer.
type Reader struct {
	in    *bufio.Reader
	conn  *Conn
	frame frame
	taken int // bytes of the buffer that the last piece took
}

// NewReader makes one with room for heads of up to size bytes.
func NewReader(size int) *Reader { return &Reader{in: bufio.NewReaderSize(nil, size)} }

// Reset begins an answer on c and discards bytes of an earlier one.
func (r *Reader) Reset(c *Conn) {
	r.in.Reset(c)
	r.conn, r.frame, r.taken = c, frame{}, 0
}

// Head is where a head is to be read from.
func (r *Reader) Head() *bufio.Reader { return r.in }

// Room is the size of the buffer, and so of the largest head.
func (r *Reader) Room() int { return r.in.Size() }

// MakeRoom replaces the buffer by a larger one with the same bytes in it.
func (r *Reader) MakeRoom(size int) {
	begun, _ := r.in.Peek(r.in.Buffered())
	r.in = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(begun), r.conn), size)
}

// Front shows at most n of the bytes that have come and were not taken.
func (r *Reader) Front(n int) []byte {
	b, _ := r.in.Peek(min(r.in.Buffered(), n))
	return b
}

// Body begins a body of so many bytes as its head says: -1 for chunked, below for no length at all.
func (r *Reader) Body(length, status int) { r.frame.reset(length, status) }

// Ended says whether the body is complete.
func (r *Reader) Ended() bool { return r.frame.ended }

// ToClose says whether nothing but the end of the connection ends the body.
func (r *Reader) ToClose() bool { return r.frame.mode == byClose }

// Clean says whether the body is complete and nothing has come behind it.
func (r *Reader) Clean() bool { return r.frame.ended && r.in.Buffered() == 0 }

// Fill waits for bytes where none are there: one read of the connection.
func (r *Reader) Fill() error {
	_, err := r.in.Peek(1)
	return err
}

// Piece returns the next piece of the body in the buffer, which can be empty. It is valid until the next Fill. ok is false at the end
// of the buffer or of the body.
func (r *Reader) Piece() (data []byte, ok bool, err error) {
	_, _ = r.in.Discard(r.taken) // cannot fail: it is buffered
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

// ErrLong is that a body is longer than it may be.
var ErrLong = errors.New("the body is too long")

// All reads the rest of the body into dst, which is empty. A body over most bytes is ErrLong. The arrival is that of the last bytes.
// Other errors are ErrChunked or the connection's.
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
				body, a = append(grown(body, len(data), most), data...), r.conn.Last()
			}
		}
	}
	return body, a, nil
}
