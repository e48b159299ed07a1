package wire

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"replayd/test/wiretest"
)

// Offer does not wait for a server that does not read. The next Write first sends the bytes that the kernel did not
// accept.
func TestOfferTLS(t *testing.T) {
	total, got := make(chan int, 1), make(chan []byte, 1)
	address, trusting := listenTLS(t, func(conn *tls.Conn) {
		_ = conn.Handshake() // the client reports the error
		read := make([]byte, <-total)
		n, _ := io.ReadFull(conn, read)
		got <- read[:n]
	})
	conn := dial(t, address, trusting)
	var want []byte
	for i := 0; !conn.Left() && len(want) < 256<<20; i++ {
		piece := bytes.Repeat([]byte{byte(i)}, 16<<10)
		if n, err := conn.Offer(piece); n != len(piece) || err != nil {
			close(total)
			t.Fatalf("want %d bytes taken, got %d, %v", len(piece), n, err)
		}
		want = append(want, piece...)
	}
	if !conn.Left() {
		t.Error("want bytes left by a server that does not read, got none")
	}
	total <- len(want) + 1
	if err := conn.Write([]byte{'.'}); err != nil || conn.Left() {
		t.Errorf("want all written, got %v, bytes left: %v", err, conn.Left())
	}
	if read := <-got; !bytes.Equal(read, append(want, '.')) {
		t.Errorf("want the %d bytes in their order, got %d", len(want)+1, len(read))
	}
}

// The session tickets that a TLS server sends after the handshake do not count as data. A byte after them does.
func TestTicketsAreNoNews(t *testing.T) {
	next := make(chan struct{})
	address, trusting := listenTLS(t, func(conn *tls.Conn) {
		_ = conn.Handshake() // the client reports the error
		<-next
		send(conn, "a")
		<-next
	})
	defer close(next)
	tickets := tls.NewLRUClientSessionCache(1)
	trusting.ClientSessionCache = tickets // Go's server sends no tickets without it
	conn := dial(t, address, trusting)
	for range 2 {
		if !conn.Silent() {
			t.Error("want a silent connection where only tickets came")
		}
	}
	if _, came := tickets.Get(trusting.ServerName); !came {
		t.Error("want a ticket, got none: it was not put to the test")
	}
	next <- struct{}{}
	wiretest.Readable(t, conn.Conn)
	if conn.Silent() {
		t.Error("want no silent connection where a byte came")
	}
}

// Silent does not allocate on a plain connection, and at most once over TLS, in crypto/tls.
func TestSilentAllocatesNothing(t *testing.T) {
	end := make(chan struct{})
	secure, trusting := listenTLS(t, func(conn *tls.Conn) { _ = conn.Handshake(); <-end })
	plain := wiretest.Listen(t, "tcp4", func(net.Conn) { <-end })
	defer close(end)
	for name, conn := range map[string]*Conn{"plain": dial(t, plain, nil), "TLS": dial(t, secure, trusting)} {
		if n := testing.AllocsPerRun(100, func() {
			if !conn.Silent() {
				t.Error("want a silent connection")
			}
		}); n > map[string]float64{"TLS": 1}[name] {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// answering writes before it reads, as crypto/tls does after a key update.
type answering struct {
	*socket
	t *testing.T
}

func (a answering) Read(p []byte) (int, error) {
	if n, err := a.Write([]byte("a key")); n != 5 || err != nil {
		a.t.Fatalf("want 5 bytes written, got %d, %v", n, err)
	}
	return a.socket.Read(p)
}

// The deadline of the previous request limits neither Silent nor the writes of TLS during it.
func TestSilentAfterADeadline(t *testing.T) {
	said, looked := make(chan string, 1), make(chan struct{})
	look := sync.OnceFunc(func() { close(looked) })
	conn := dial(t, wiretest.Listen(t, "tcp4", func(conn net.Conn) {
		buffer := make([]byte, 10)
		n, _ := conn.Read(buffer)
		said <- string(buffer[:n])
		<-looked
	}), nil)
	defer look()
	conn.app = answering{conn.socket, t}
	if err := conn.Arm(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if !conn.Silent() {
		t.Fatal("want a silent connection")
	}
	if got := <-said; got != "a key" {
		t.Errorf("the server got %q", got)
	}
	look()
	wiretest.Closed(t, conn.Conn)
	conn.app = conn.socket // the closed connection cannot be written to
	if conn.Silent() {
		t.Error("want no silent connection where it has ended")
	}
}
