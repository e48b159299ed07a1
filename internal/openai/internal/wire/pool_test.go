package wire

import (
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A Pool returns first what was opened ahead, the oldest first, and then the connection that was used last. It closes
// connections that are idle for too long. Close closes the others, and later ones are closed by Put and Add.
func TestPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle = 4 * time.Second
		var s Pool
		conns := make([]*Conn, 5)
		opened := func(i int, put func(*Conn)) {
			near, far := net.Pipe()
			t.Cleanup(func() { _ = near.Close(); _ = far.Close() })
			conns[i] = NewConn(near, NewClock())
			put(conns[i])
		}
		open := func(want ...int) {
			t.Helper()
			var got []int
			for i, c := range conns {
				if c != nil && c.SetDeadline(time.Time{}) == nil {
					got = append(got, i)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("want %v open, got %v", want, got)
			}
		}
		take := func(want int) {
			t.Helper()
			if c := s.Take(time.Now(), idle, 9); want < 0 && c != nil || want >= 0 && c != conns[want] {
				t.Errorf("want number %d, got %d", want, slices.Index(conns, c))
			}
		}
		opened(0, s.Put)
		opened(1, s.Put)
		<-time.After(time.Second)
		opened(2, s.Add)
		opened(3, s.Add)
		if n := s.Fresh(time.Now(), idle); n != 4 {
			t.Errorf("want 4 fresh connections, got %d", n)
		}
		take(2)
		take(3)
		take(1)
		<-time.After(idle)
		take(-1)
		open(1, 2, 3)

		s.Put(conns[2])
		s.Renew(time.Now())
		s.Put(conns[3])
		if s.Keeps(conns[3]) {
			t.Error("want no connection of before a Renew to be used")
		}
		open(1)
		<-time.After(1)
		opened(2, s.Put)
		if !s.Keeps(conns[2]) || s.Fresh(time.Now(), idle) != 1 {
			t.Error("want a connection of after it")
		}
		s.Close()
		opened(3, s.Put)
		opened(4, s.Add)
		open(1)
	})
}

// Trim closes what is beyond its bound, the connections first that were not used for longest. Put adds none where the bound is 0.
func TestPoolIsTrimmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle = 4 * time.Second
		var s Pool
		pipe := func() *Conn {
			near, far := net.Pipe()
			t.Cleanup(func() { _ = near.Close(); _ = far.Close() })
			return NewConn(near, NewClock())
		}
		isOpen := func(c *Conn) bool { return c.SetDeadline(time.Time{}) == nil }
		put := func(c *Conn) {
			s.Open()
			s.Put(c)
		}
		kept := []*Conn{pipe(), pipe(), pipe()}
		for _, c := range kept {
			put(c)
		}
		ahead := []*Conn{pipe(), pipe()}
		if n := s.Reserve(5, time.Now(), idle); n != len(ahead) {
			t.Errorf("%d are to be opened for 5 with 3 there, want 2", n)
		}
		for _, c := range ahead {
			s.Add(c)
		}
		s.Trim(4, 0, time.Now(), idle)
		if isOpen(kept[0]) || !isOpen(kept[1]) || s.Fresh(time.Now(), idle) != 4 {
			t.Error("want the first of those used closed, and no other")
		}
		more := pipe()
		if put(more); s.Fresh(time.Now(), idle) != 5 {
			t.Error("want one that was used added until the next look")
		}
		if s.Trim(0, 3, time.Now(), idle); s.Fresh(time.Now(), idle) != 3 {
			t.Error("want one left for each request in flight, which has not taken it yet")
		}
		s.Trim(1, 0, time.Now(), idle)
		if isOpen(kept[2]) || isOpen(more) || isOpen(ahead[0]) || s.Fresh(time.Now(), idle) != 1 {
			t.Error("want one left")
		}
		<-time.After(idle)
		if s.Trim(1, 0, time.Now(), idle); s.Fresh(time.Now(), idle) != 0 {
			t.Error("want none left that was idle")
		}
		s.Trim(0, 0, time.Now(), idle)
		last := pipe()
		if put(last); isOpen(last) {
			t.Error("want none kept where none is needed")
		}
	})
}

// A connection counts wherever it is: with a request, in the pool, or on its way to either. So what a workload needs in all can be
// applied at any moment: no burst that leaves or ends meanwhile has connections opened twice, or closed and opened again.
func TestPoolCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle, need = 4 * time.Second, 20
		var s Pool
		reserve := func(when string, want int) {
			t.Helper()
			if n := s.Reserve(need, time.Now(), idle); n != want {
				t.Errorf("%s: %d are to be opened, want %d", when, n, want)
			}
		}
		reserve("at first", need)
		reserve("while they are being opened", 0)
		s.Release(false, time.Now())
		reserve("one was not", 1)
		for range need {
			near, far := net.Pipe()
			t.Cleanup(func() { _ = near.Close(); _ = far.Close() })
			s.Add(NewConn(near, NewClock()))
		}
		reserve("all are open", 0)
		var out []*Conn
		for c := s.Take(time.Now(), idle, 1); c != nil; c = s.Take(time.Now(), idle, 1) {
			out = append(out, c)
		}
		reserve("a burst has left", 0)
		for range 5 {
			s.Open()
		}
		s.Trim(need, 0, time.Now(), idle)
		for _, c := range out {
			s.Put(c)
		}
		reserve("it has ended", 0)
		for range 5 {
			s.Drop()
		}
		if s.Trim(need, 0, time.Now(), idle); s.Fresh(time.Now(), idle) != need {
			t.Errorf("%d are kept of the burst's, want %d", s.Fresh(time.Now(), idle), need)
		}
		if s.Release(true, time.Now()); s.Reserve(need+9, time.Now(), idle) != 0 {
			t.Error("a server that refuses connections gets more ahead")
		}
		<-time.After(spurnedFor)
		s.Close()
	})
}
