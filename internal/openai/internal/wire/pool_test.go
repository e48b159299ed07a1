package wire

import (
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// A Pool returns its oldest connection first and closes connections that are idle for too long. Close closes the
// others, and later ones are closed by Put.
func TestPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle = 4 * time.Second
		var s Pool
		conns := make([]*Conn, 4)
		opened := func(i int) {
			near, far := net.Pipe()
			t.Cleanup(func() { _ = near.Close(); _ = far.Close() })
			conns[i] = NewConn(near, NewClock())
			s.Put(conns[i])
		}
		open := func(i int) bool { return conns[i].NetConn().SetDeadline(time.Time{}) == nil }
		opened(0)
		<-time.After(time.Second)
		opened(1)
		opened(2)
		conns[2].Used(time.Now().Add(time.Second))
		if n := s.Fresh(time.Now(), idle); n != 3 {
			t.Errorf("want 3 fresh connections, got %d", n)
		}
		if c := s.Take(time.Now(), idle); c != conns[0] {
			t.Error("want the oldest")
		}
		<-time.After(idle)
		if c := s.Take(time.Now(), idle); c != conns[2] || open(1) || !open(2) {
			t.Errorf("want the one that was used later, and the other closed: open %v, %v", open(1), open(2))
		}
		if c := s.Take(time.Now(), idle); c != nil {
			t.Error("want none")
		}
		if !s.Keeps(conns[2]) {
			t.Error("want a connection to be kept")
		}
		opened(1)
		s.Renew(time.Now())
		s.Put(conns[2])
		if s.Keeps(conns[2]) || open(1) || open(2) {
			t.Errorf("want no connection of before a Renew to be used or open: open %v, %v", open(1), open(2))
		}
		<-time.After(1)
		opened(2)
		if !s.Keeps(conns[2]) || s.Fresh(time.Now(), idle) != 1 {
			t.Error("want a connection of after it")
		}
		s.Close()
		opened(3)
		if open(2) || open(3) || s.Fresh(time.Now(), idle) != 0 {
			t.Errorf("want all closed: open %v, %v", open(2), open(3))
		}
	})
}
