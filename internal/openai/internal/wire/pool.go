package wire

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Pool holds connections that were opened ahead of the requests that will use them, oldest first.
type Pool struct {
	mu     sync.Mutex
	conns  []*Conn
	closed bool
	since  atomic.Pointer[time.Time] // of the latest Renew; nil: there was none
}

// Renew closes all connections that nobody has taken, and makes Keeps refuse every connection that was opened before.
func (s *Pool) Renew(now time.Time) {
	s.since.Store(&now)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		c.Cut()
	}
	s.conns = nil
}

// Keeps reports whether a connection may be used again: it was opened after the latest Renew.
func (s *Pool) Keeps(c *Conn) bool {
	since := s.since.Load()
	return since == nil || c.made.After(*since)
}

// Put adds a connection. A closed pool closes it, and so does one that was renewed since.
func (s *Pool) Put(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !s.Keeps(c) {
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
