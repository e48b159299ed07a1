package wire

import (
	"slices"
	"sync"
	"time"
)

// A Pool holds connections that were opened ahead of the requests that will use them, oldest first.
type Pool struct {
	mu     sync.Mutex
	conns  []*Conn
	closed bool
}

// Put adds a connection. A closed pool closes it.
func (s *Pool) Put(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		c.Cut()
		return
	}
	s.conns = append(s.conns, c)
}

// Take removes and returns the oldest fresh connection, or nil.
func (s *Pool) Take(now time.Time, idle time.Duration) *Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(now, idle)
	if len(s.conns) == 0 {
		return nil
	}
	c := s.conns[0]
	s.conns = slices.Delete(s.conns, 0, 1)
	return c
}

// Fresh returns the number of connections that Take could return.
func (s *Pool) Fresh(now time.Time, idle time.Duration) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(now, idle)
	return len(s.conns)
}

// sweep closes connections that are too old. The caller holds mu.
func (s *Pool) sweep(now time.Time, idle time.Duration) {
	s.conns = slices.DeleteFunc(s.conns, func(c *Conn) bool {
		if c.Fresh(now, idle) {
			return false
		}
		c.Cut()
		return true
	})
}

// Close closes the connections, and every connection that is Put later.
func (s *Pool) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, c := range s.conns {
		c.Cut()
	}
	s.conns = nil
}
