package wire

import (
	"errors"
	"io"
	"net"
	"testing"
)

// say returns a Reader, past the head, of the texts that a server writes one by one before it closes the
// connection.
func say(t *testing.T, length int, reads ...string) *Reader {
	t.Helper()
	near, far := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, text := range reads {
			send(far, text)
		}
		_ = far.Close()
	}()
	t.Cleanup(func() { _ = near.Close(); <-done })
	r := NewReader(64)
	r.Reset(NewConn(near, NewClock()))
	r.Body(length, 200)
	return r
}

// All reads a body to its end and no further, up to a limit. The arrival is that of the last bytes.
func TestAll(t *testing.T) {
	for name, c := range map[string]struct {
		length int
		reads  []string
		want   string
		err    error
		read   uint64 // the number of the read with the last bytes
		clean  bool
	}{
		"by length":              {5, []string{"he", "llo"}, "hello", nil, 2, true},
		"more behind it":         {5, []string{"hello!"}, "hello", nil, 1, false},
		"in chunks":              {-1, []string{"2\r\nhe\r\n3", "\r\nllo\r\n", "0\r\n\r\n"}, "hello", nil, 2, true},
		"to the end":             {-2, []string{"hel", "lo"}, "hello", nil, 2, false},
		"nothing":                {0, []string{"x"}, "", nil, 0, true},
		"too long":               {-2, []string{"hello", "there"}, "hellothe", ErrLong, 1, false},
		"cut short":              {5, []string{"hel"}, "hel", io.EOF, 1, false},
		"cut short in chunks":    {-1, []string{"5\r\nhel"}, "hel", io.EOF, 1, false},
		"no chunks":              {-1, []string{"2\r\nhe\r\n", "x"}, "he", ErrChunked, 1, false},
		"longer than the buffer": {70, []string{"0123456789012345678901234567890123456789012345678901234567890123456789"}, "01234567", ErrLong, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := say(t, c.length, c.reads...)
			body, a, err := r.All(nil, 8)
			if string(body) != c.want || !errors.Is(err, c.err) || a.Read != c.read || r.Clean() != c.clean {
				t.Errorf("want %q of read %d, %v, clean %v, got %q of read %d, %v, clean %v", c.want, c.read, c.err, c.clean, body, a.Read, err, r.Clean())
			}
		})
	}
}

// MakeRoom keeps the bytes in the smaller buffer, and the Reader goes on reading from the connection.
func TestMakeRoom(t *testing.T) {
	r := say(t, -2, "0123456789012345678901234567890123456789012345678901234567890123456789")
	if _, err := r.Head().Peek(65); err == nil {
		t.Fatal("want no room for 65 bytes")
	}
	r.MakeRoom(128)
	if head, err := r.Head().Peek(70); len(head) != 70 || err != nil {
		t.Errorf("want 70 bytes, got %q, %v", head, err)
	}
	if got := string(r.Front(3)); got != "012" || r.Room() != 128 {
		t.Errorf("want the beginning and room for 128, got %q and %d", got, r.Room())
	}
}

// A head that states one length several times is read with one.
func TestOneLength(t *testing.T) {
	for in, want := range map[string]string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nA: b\r\ncontent-length:5\r\n\r\nhello": "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5 , 5\r\n\r\nhello":                         "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello":        "",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello":                             "",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n":                 "",
	} {
		r := say(t, 0, in)
		r.MakeRoom(4096)
		_, _ = r.in.Peek(len(in))
		if got := string(r.OneLength()); got != want {
			t.Errorf("%q: want %q, got %q", in, want, got)
		}
	}
}

// A head whose lines end in LF alone is given back with CRLF. One with CRLF, no head of HTTP and one without an end are left to the parser.
func TestLooseHead(t *testing.T) {
	for in, want := range map[string]string{
		"HTTP/1.1 200 OK\nA: b\n\nhello":       "HTTP/1.1 200 OK\r\nA: b\r\n\r\n",
		"HTTP/1.1 200 OK\r\nA: b\n\r\nhello":   "HTTP/1.1 200 OK\r\nA: b\r\n\r\n",
		"HTTP/1.1 200 OK\r\nA: b\r\n\r\nhello": "",
		"SSH-2.0\n\n":                          "",
		"HTTP/1.1 200 OK\nA: b\n":              "",
	} {
		r := say(t, 0, in)
		r.MakeRoom(4096)
		_, _ = r.in.Peek(1)
		if got := string(r.LooseHead()); got != want {
			t.Errorf("%q: want %q, got %q", in, want, got)
		}
	}
}
