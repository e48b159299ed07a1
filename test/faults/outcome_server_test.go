//go:build faults

package faults_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"replayd/test/outside"
)

// A script handles one request after its head was read. The connection is closed after it.
type script func(c *call)

// A call is one request and its connection.
type call struct {
	net.Conn              // TCP, or TLS over it
	tcp      *net.TCPConn // under TLS
	in       *bufio.Reader
	request  *http.Request // its body is not read
	random   *rand.Rand
	ended    <-chan struct{} // closed when the server ends
}

// A server answers every fifth row of a trace well, on a connection that it keeps, and the others by a script.
type server struct {
	answer script
	early  func(c *call) // called before anything is read; may be nil
	always bool          // the script is for every row
	kept   bool          // the connection is kept after the script, too
	whole  bool          // good answers are one JSON object instead of a stream
	secure *tls.Config   // nil: no TLS

	listener net.Listener
	calls    atomic.Uint64
	mu       sync.Mutex
	open     map[net.Conn]bool // nil: the server has ended
	ended    chan struct{}
	work     sync.WaitGroup
}

// listen starts the server, which ends with the test.
func (s *server) listen(t *testing.T) (address string) {
	t.Helper()
	var err error
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	s.open, s.ended = map[net.Conn]bool{}, make(chan struct{})
	s.work.Go(func() {
		for {
			conn, err := s.listener.Accept()
			if err != nil || !s.hold(conn) {
				return
			}
			s.work.Go(func() {
				defer s.let(conn)
				s.serve(t, conn.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() {
		_ = s.listener.Close()
		close(s.ended)
		s.mu.Lock()
		for conn := range s.open {
			_ = conn.Close()
		}
		s.open = nil
		s.mu.Unlock()
		s.work.Wait()
	})
	return s.listener.Addr().String()
}

func (s *server) hold(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		_ = conn.Close()
		return false
	}
	s.open[conn] = true
	return true
}

func (s *server) let(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = conn.Close()
	delete(s.open, conn)
}

// serve answers the requests of a connection up to the first one for the script.
func (s *server) serve(t *testing.T, tcp *net.TCPConn) {
	c := &call{Conn: tcp, tcp: tcp, random: rand.New(rand.NewPCG(s.calls.Add(1), 1)), ended: s.ended}
	if s.early != nil {
		s.early(c)
		return
	}
	if s.secure != nil {
		c.Conn = tls.Server(tcp, s.secure)
	}
	c.in = bufio.NewReader(c.Conn)
	for {
		var err error
		if c.request, err = http.ReadRequest(c.in); err != nil {
			return // the client has left, or does not trust the certificate
		}
		if c.request.Method == http.MethodGet { // the model list, or the engine's version
			c.read()
			c.send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
			continue
		}
		_, _, row := outside.Place(t, c.request.Header.Get("X-Request-Id"))
		if !goodRow(row) || s.always {
			if s.answer(c); !s.kept {
				return
			}
			continue
		}
		c.read()
		if s.whole {
			c.send(plain("200 OK", "application/json", whole))
			continue
		}
		c.send(streamHead + c.chunked(goodEvents) + lastChunk)
	}
}

// goodRow reports whether a row is answered well.
func goodRow(row int) bool { return row%5 == 4 }

// read reads the body of the request.
func (c *call) read() { _, _ = io.Copy(io.Discard, c.request.Body) }

// send writes a text in several pieces, each a segment, with pauses of some milliseconds between some of them.
func (c *call) send(text string) {
	for pieces := 1 + c.random.IntN(8); pieces > 1 && len(text) > 1; pieces-- {
		n := 1 + c.random.IntN(len(text)-1)
		if c.random.IntN(2) == 0 {
			n = 1 + c.random.IntN(min(len(text)-1, 20)) // also near the beginning of a long text
		}
		if _, err := io.WriteString(c, text[:n]); err != nil {
			return
		}
		text = text[n:]
		if c.random.IntN(2) == 0 {
			<-time.After(time.Duration(c.random.IntN(3000)) * time.Microsecond)
		}
	}
	_, _ = io.WriteString(c, text)
}

// chunked frames a text in HTTP chunks that are cut anywhere.
func (c *call) chunked(text string) string {
	var b strings.Builder
	for text != "" {
		n := 1 + c.random.IntN(len(text))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, text[:n])
		text = text[n:]
	}
	return b.String()
}

// silent waits until the client has left.
func (c *call) silent() { _, _ = io.Copy(io.Discard, c.Conn) }

// reset ends the connection as a dead peer does: without an end of the stream, and unread data is discarded.
func (c *call) reset() {
	_ = c.tcp.SetLinger(0)
	_ = c.tcp.Close()
}
