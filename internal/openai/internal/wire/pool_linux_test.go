package wire

import (
	"net"
	"testing"
	"time"

	"replayd/test/wiretest"
)

// Trim closes connections that the server has closed. One that the server ended before its first request says that the server has
// enough: none is opened ahead for a while.
func TestPoolNoticesTheServersEnd(t *testing.T) {
	address := wiretest.Listen(t, "tcp4", func(c net.Conn) { _ = c.Close() })
	closed := func() *Conn {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		wiretest.Closed(t, c)
		return NewConn(c, NewClock())
	}
	const idle = time.Hour
	now := time.Now()
	// A look costs system calls: the next one is only made after a while, however many workloads ask.
	var looked Pool
	looked.Trim(2, 0, now, idle)
	put := func(s *Pool, c *Conn) {
		s.Open()
		s.Put(c)
	}
	add := func(s *Pool, c *Conn) {
		s.Reserve(1, now, idle)
		s.Add(c)
	}
	put(&looked, closed())
	for _, c := range []struct {
		after time.Duration
		left  int
	}{{0, 1}, {lookEvery - 1, 1}, {lookEvery, 0}} {
		if looked.Trim(2, 0, now.Add(c.after), idle); looked.Fresh(now, idle) != c.left {
			t.Errorf("%v after a look: want %d left, got %d", c.after, c.left, looked.Fresh(now, idle))
		}
	}
	for name, c := range map[string]struct {
		add     func(*Pool, *Conn)
		notice  func(*Pool)
		missing int
	}{
		"used, looked at":  {put, func(s *Pool) { s.Trim(2, 0, now, idle) }, 2},
		"ahead, looked at": {add, func(s *Pool) { s.Trim(2, 0, now, idle) }, 0},
		"used, taken":      {put, func(s *Pool) { s.Take(now, idle, 2) }, 2},
		"ahead, taken":     {add, func(s *Pool) { s.Take(now, idle, 2) }, 0},
	} {
		var s Pool
		c.add(&s, closed())
		c.notice(&s)
		left, soon := s.Fresh(now, idle), s.Reserve(2, now, idle)
		if later := s.Reserve(2, now.Add(spurnedFor), idle); left != 0 || soon != c.missing || soon+later != 2 {
			t.Errorf("%s: %d are left, %d are missing, after %v %d; want 0, %d, and 2 in all", name, left, soon, spurnedFor, later, c.missing)
		}
	}
}
