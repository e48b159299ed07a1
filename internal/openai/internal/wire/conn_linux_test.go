package wire

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"replayd/internal/openai/internal/wiretest"
)

// An offer does not wait for a server that does not read. What the kernel has no room for goes out in its turn.
func TestOfferTLS(t *testing.T) {
	total, got := make(chan int, 1), make(chan []byte, 1)
	address, trusting := listenTLS(t, func(conn *tls.Conn) {
		_ = conn.Handshake() // an error is the client's too
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

// A TLS server's session tickets, which come behind the handshake, are no news, and what comes behind them is.
func TestTicketsAreNoNews(t *testing.T) {
	next := make(chan struct{})
	address, trusting := listenTLS(t, func(conn *tls.Conn) {
		_ = conn.Handshake() // an error is the client's too
		<-next
		send(conn, "a")
		<-next
	})
	defer close(next)
	tickets := tls.NewLRUClientSessionCache(1)
	trusting.ClientSessionCache = tickets // else Go's server sends none
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
	wiretest.Readable(t, conn.NetConn())
	if conn.Silent() {
		t.Error("want no silent connection where a byte came")
	}
}

// The look at a kept connection allocates nothing, but what crypto/tls does for each record.
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

// answering answers before it reads, as TLS does when it is given a new key.
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

// The deadline of the request before bounds neither the look nor what TLS may answer in it.
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
	wiretest.Closed(t, conn.NetConn())
	conn.app = conn.socket // nobody is there to answer
	if conn.Silent() {
		t.Error("want no silent connection where it has ended")
	}
}
