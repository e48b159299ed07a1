package visitors

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// A street is a listener without a network. Connections have the addresses that a test gives them.
type street struct {
	arrivals chan net.Conn
	once     sync.Once
	gone     chan struct{}
	faults   chan error
}

func newStreet() *street {
	return &street{arrivals: make(chan net.Conn), gone: make(chan struct{}), faults: make(chan error, 1)}
}

func (s *street) Accept() (net.Conn, error) {
	select {
	case err := <-s.faults:
		return nil, err
	default:
	}
	select {
	case c := <-s.arrivals:
		return c, nil
	case err := <-s.faults:
		return nil, err
	case <-s.gone:
		return nil, net.ErrClosed
	}
}
func (s *street) Close() error   { s.once.Do(func() { close(s.gone) }); return nil }
func (s *street) Addr() net.Addr { return &net.TCPAddr{} }

type caller struct {
	net.Conn
	from net.Addr
}

func (c caller) RemoteAddr() net.Addr { return c.from }

// come connects from an address.
func (s *street) come(from string) net.Conn {
	pass(briefly) // of virtual time: who came first is known, and may make room
	near, far := net.Pipe()
	s.arrivals <- caller{near, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 1))}
	synctest.Wait()
	return far
}

// ask sends a request, and returns whether it is answered.
func ask(c net.Conn, path string) bool {
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path); err != nil {
		return false
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return err == nil
}

func isOpen(c net.Conn) bool {
	synctest.Wait()
	_ = c.SetReadDeadline(time.Now())
	_, err := c.Read(make([]byte, 1))
	_ = c.SetReadDeadline(time.Time{})
	return err != nil && os.IsTimeout(err)
}

// visit calls f with a server that has a Door, in virtual time. Requests of /slow are answered when the test ends.
func visit(t *testing.T, most int, f func(*street, *Door)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, d := newStreet(), NewDoor(func() int { return most })
		ctx, cancel := context.WithCancel(t.Context())
		server := &http.Server{
			IdleTimeout: 5 * time.Minute, ReadHeaderTimeout: time.Hour,
			Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/slow" {
					<-ctx.Done()
				}
			}),
		}
		d.Serve(server)
		served := make(chan error)
		go func() { served <- server.Serve(d.Listener(s)) }()
		f(s, d)
		cancel()
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		synctest.Wait()
		if n := d.Open(); n != 0 || len(d.of) != 0 {
			t.Errorf("%d connections are open at the end", n)
		}
	})
}

func counts(t *testing.T, d *Door, want string) {
	t.Helper()
	got := fmt.Sprintf("evicted %d refused %d idle %d too_large %d", d.closed[Evicted].Load(), d.closed[Refused].Load(), d.closed[Idle].Load(), d.closed[TooLarge].Load())
	if got != want {
		t.Errorf("want %s, got %s", want, got)
	}
}

// Whoever holds most connections makes room for a new one, idle ones first, then those without a complete request.
func TestANewAddressGetsIn(t *testing.T) {
	visit(t, 16, func(s *street, d *Door) {
		var flood []net.Conn
		for i := range 16 {
			flood = append(flood, s.come(fmt.Sprintf("10.0.0.%d", 1+i%4)))
		}
		if !ask(flood[5], "/") { // the only one of them that is idle
			t.Fatal("want an answer")
		}
		scraper := s.come("10.9.9.9")
		if !ask(scraper, "/") || isOpen(flood[5]) || !isOpen(flood[0]) {
			t.Error("want the idle connection to make room")
		}
		if other := s.come("10.9.9.8"); !ask(other, "/") || isOpen(flood[0]) || !isOpen(flood[1]) {
			t.Error("want the oldest one to make room")
		}
		counts(t, d, "evicted 2 refused 0 idle 0 too_large 0")
		if !ask(scraper, "/") || d.Open() != 16 {
			t.Errorf("want the scraper to stay, and 16 connections, got %d", d.Open())
		}
	})
}

// A burst of visitors leaves a scrape the time in which its request is read and its response is written.
func TestBurst(t *testing.T) {
	for name, asked := range map[string]bool{"before the request": false, "before the response is read": true} {
		t.Run(name, func(t *testing.T) {
			visit(t, 4, func(s *street, _ *Door) {
				scraper := s.come("10.0.0.1")
				if asked {
					fmt.Fprint(scraper, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
				}
				go func() {
					for i := range byte(20) {
						near, _ := net.Pipe()
						s.arrivals <- caller{near, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 1, i}), 1))}
					}
				}()
				synctest.Wait() // all have come that find room
				if !asked {
					fmt.Fprint(scraper, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
				}
				if answer, err := http.ReadResponse(bufio.NewReader(scraper), nil); err != nil || answer.Body.Close() != nil {
					t.Errorf("want the scrape answered, got %v", err)
				}
				pass(time.Second)
			})
		})
	}
}

// A connection of which nothing was read yet stays while others of its address have sent a part of a request.
func TestPartsOfRequestsGoFirst(t *testing.T) {
	visit(t, 16, func(s *street, _ *Door) {
		silent := s.come("10.0.0.1")
		part := s.come("10.0.0.1")
		if _, err := io.WriteString(part, "GET / HTTP/1.1\r\nHost:"); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			s.come("10.0.0.1")
		}
		if isOpen(part) || !isOpen(silent) {
			t.Error("want the part of a request to make room")
		}
	})
}

// One address has a quarter. Its own connections make room, and if all are being answered, it is refused. Others are not touched.
func TestShareOfAnAddress(t *testing.T) {
	visit(t, 32, func(s *street, d *Door) {
		other := s.come("10.0.0.2")
		var own []net.Conn
		for range 8 {
			own = append(own, s.come("2001:db8::1"))
		}
		ninth := s.come("2001:db8::ffff:1") // of the same /64
		if isOpen(own[0]) || !isOpen(ninth) || !isOpen(other) || d.Open() != 9 {
			t.Errorf("want the oldest of the address to make room, got %d open", d.Open())
		}
		for _, c := range append(own[1:], ninth) {
			go ask(c, "/slow")
		}
		synctest.Wait()
		if isOpen(s.come("2001:db8::2")) {
			t.Error("want no room beside eight that are being answered")
		}
		if !isOpen(s.come("2001:db8:0:1::1")) {
			t.Error("want room for another network")
		}
		counts(t, d, "evicted 1 refused 1 idle 0 too_large 0")
	})
}

// If every connection is being answered, an address that has none gets in, and one that has as many as the others does not.
func TestAllAreBusy(t *testing.T) {
	visit(t, 8, func(s *street, d *Door) {
		for i := range 8 {
			go ask(s.come(fmt.Sprintf("10.0.0.%d", 1+i/4)), "/slow")
			synctest.Wait()
		}
		first := s.come("10.9.9.9")
		if !ask(first, "/") {
			t.Error("want an answer for a new address")
		}
		if second := s.come("10.9.9.9"); !ask(second, "/") {
			t.Error("want an answer for an address with fewer than others")
		}
		if isOpen(s.come("10.0.0.1")) && d.of[netip.MustParsePrefix("10.0.0.1/32")] > 4 {
			t.Error("want no more than the share")
		}
	})
}

// Idle connections stay for minutes, and for 10 s while half of the connections are taken.
func TestIdleUnderLoad(t *testing.T) {
	visit(t, 8, func(s *street, d *Door) {
		idle := s.come("10.0.0.1")
		if !ask(idle, "/") {
			t.Fatal("want an answer")
		}
		pass(time.Minute)
		if !isOpen(idle) {
			t.Error("want it open after a minute alone")
		}
		var half []net.Conn
		for i := range 3 {
			half = append(half, s.come(fmt.Sprintf("10.0.1.%d", i)))
		}
		if !ask(half[0], "/") {
			t.Fatal("want an answer")
		}
		pass(2 * time.Second)
		if isOpen(idle) || !isOpen(half[0]) {
			t.Error("want the one closed that was idle for over 10 s")
		}
		pass(time.Minute) // three are less than half
		if !isOpen(half[0]) {
			t.Error("want it open")
		}
		counts(t, d, "evicted 0 refused 0 idle 1 too_large 0")
	})
}

// Without a descriptor to accept with, one connection makes room. Without any to close, the server waits, as net/http does.
func TestNoDescriptorToAccept(t *testing.T) {
	visit(t, 8, func(s *street, d *Door) {
		old := s.come("10.0.0.1")
		s.faults <- &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
		synctest.Wait()
		if isOpen(old) || !ask(s.come("10.0.0.2"), "/") {
			t.Error("want the old connection closed and the new one answered")
		}
		counts(t, d, "evicted 1 refused 0 idle 0 too_large 0")
	})
}

// The bytes before the first complete request are bounded, those of a TLS handshake too.
func TestBytesBeforeTheFirstRequest(t *testing.T) {
	d := NewDoor(func() int { return 8 })
	near, far := net.Pipe()
	g := d.enter(caller{near, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}})
	go func() { _, _ = far.Write(make([]byte, beforeAnswer+1)) }()
	n, err := io.Copy(io.Discard, g)
	if n != beforeAnswer && err == nil || err == nil || n > beforeAnswer {
		t.Errorf("want an error after %d bytes, got %v after %d", beforeAnswer, err, n)
	}
	d.state(g, http.StateActive)
	go func() { _, _ = far.Write(make([]byte, 10*beforeAnswer)); _ = far.Close() }()
	if n, err := io.Copy(io.Discard, g); err != nil || n < 9*beforeAnswer {
		t.Errorf("want no bound after it, got %v after %d", err, n)
	}
	d.state(g, http.StateClosed)
}

func TestSeries(t *testing.T) {
	visit(t, 8, func(s *street, d *Door) {
		s.come("10.0.0.1")
		reg := prometheus.NewRegistry()
		reg.MustRegister(d)
		if err := testutil.GatherAndCompare(reg, strings.NewReader(`# HELP replayd_web_connections Connections of visitors, scrapers among them.
# TYPE replayd_web_connections gauge
replayd_web_connections 1
# HELP replayd_web_connections_closed_total Connections of visitors that were closed because of their number or size, by reason.
# TYPE replayd_web_connections_closed_total counter
replayd_web_connections_closed_total{reason="evicted"} 0
replayd_web_connections_closed_total{reason="idle"} 0
replayd_web_connections_closed_total{reason="refused"} 0
replayd_web_connections_closed_total{reason="too_large"} 0
# HELP replayd_web_connections_limit Connections that visitors may have at once.
# TYPE replayd_web_connections_limit gauge
replayd_web_connections_limit 8
`)); err != nil {
			t.Error(err)
		}
	})
}

// pass lets virtual time go by.
func pass(d time.Duration) { <-time.After(d) }
