package wire

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Pool holds the connections to one server that carry no request now, and counts those that do. It keeps as many as its bound
// allows. The zero value keeps all.
type Pool struct {
	mu      sync.Mutex
	ahead   []*Conn // that never carried a request, oldest first
	kept    []*Conn // the others; the one used last is last
	busy    int     // connections of requests, those that are being opened included
	opening int     // connections that are being opened ahead
	bounded bool
	most    int       // of all together, if bounded
	looked  int       // index in kept of the next one that Trim looks at
	lookAt  time.Time // when Trim may look again
	spurned time.Time // when the server last ended a connection that never carried a request, or refused one
	closed  bool
	since   atomic.Pointer[time.Time] // of the latest Renew; nil: there was none
}

// Renew closes all connections that nobody has taken, and makes Keeps refuse every connection that was opened before.
func (s *Pool) Renew(now time.Time) {
	s.since.Store(&now)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shed(0)
}

// Keeps reports whether a connection may be used again: it was opened after the latest Renew.
func (s *Pool) Keeps(c *Conn) bool {
	since := s.since.Load()
	return since == nil || c.made.After(*since)
}

// Reserve returns how many connections are to be opened ahead for total ones, with those of requests. Each must be followed by Add or
// Release.
func (s *Pool) Reserve(total int, now time.Time, idle time.Duration) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(now, idle)
	if !s.spurned.IsZero() && now.Sub(s.spurned) < spurnedFor {
		return 0
	}
	n = max(0, total-s.busy-s.opening-s.len())
	s.opening += n
	return n
}

// Add adds a connection that was opened ahead, beyond the bound too: Trim decides.
func (s *Pool) Add(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opening--
	s.put(&s.ahead, c)
}

// Release gives up the place of a connection that was not opened ahead. refused says that the server did not want it.
func (s *Pool) Release(refused bool, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opening--
	if refused {
		s.spurned = now
	}
}

// Open says that a request opens a connection of its own. Put or Drop must follow, as after Take.
func (s *Pool) Open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy++
}

// Drop says that the connection of a request was not opened, or is closed.
func (s *Pool) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
}

// Put adds a connection whose request has ended. It closes it if none is to be kept; beyond a higher bound Trim decides.
func (s *Pool) Put(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy--; s.bounded && s.most == 0 {
		c.Cut()
		return
	}
	c.used = time.Now()
	s.put(&s.kept, c)
}

// put is Add and Put. The caller holds mu.
func (s *Pool) put(to *[]*Conn, c *Conn) {
	if s.closed || !s.Keeps(c) {
		c.Cut()
		return
	}
	*to = append(*to, c)
}

func (s *Pool) len() int { return len(s.ahead) + len(s.kept) }

// Take removes and returns a connection that a request can go out on, fresh and silent: the oldest of those opened ahead, so
// that none is opened for nothing, else the one used last. nil: there is none, or none among so many tries.
func (s *Pool) Take(now time.Time, idle time.Duration, tries int) (c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(now, idle)
	for ; tries > 0 && s.len() > 0; tries-- {
		n, ahead := len(s.kept), len(s.ahead) > 0
		if ahead {
			c = s.ahead[0]
			s.ahead = slices.Delete(s.ahead, 0, 1)
		} else {
			c = s.kept[n-1]
			s.kept = slices.Delete(s.kept, n-1, n)
		}
		if c.Silent() {
			s.busy++
			return c
		}
		if ahead {
			s.spurned = now
		}
		c.Cut()
	}
	return nil
}

// spurnedFor is the time without connections ahead after a server has refused one, or has ended one before its first request. A server
// at its limit does either.
const spurnedFor = 10 * time.Second

// Fresh returns the number of connections that Take could return.
func (s *Pool) Fresh(now time.Time, idle time.Duration) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(now, idle)
	return s.len()
}

// A look at a connection costs a system call, and a request may wait for it. So Trim looks at a bounded number of them, and not at
// each call where many workloads have one server.
const (
	lookMost  = 64
	lookEvery = 40 * time.Millisecond
)

// Trim sets how many connections there may be, with those of requests, and closes idle ones beyond it: those that were unused for
// longest first. So many requests are flying: those that have not taken their connection yet find one. It also closes those that were idle for too long and, every 40 ms, those on which bytes or the server's end came.
func (s *Pool) Trim(most, flying int, now time.Time, idle time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bounded, s.most = true, most
	s.sweep(now, idle)
	s.shed(max(0, max(most, flying)-s.busy))
	if now.Before(s.lookAt) {
		return
	}
	s.lookAt = now.Add(lookEvery)
	for range min(lookMost, len(s.kept)) {
		if s.looked >= len(s.kept) {
			s.looked = 0
		}
		if c := s.kept[s.looked]; c.Silent() {
			s.looked++
		} else {
			c.Cut()
			s.kept = slices.Delete(s.kept, s.looked, s.looked+1)
		}
	}
	s.ahead = slices.DeleteFunc(s.ahead, func(c *Conn) bool {
		if c.Silent() {
			return false
		}
		s.spurned = now
		c.Cut()
		return true
	})
}

// shed closes connections until most are left. The caller holds mu.
func (s *Pool) shed(most int) {
	for s.len() > most {
		from := &s.kept
		if len(s.kept) == 0 {
			from = &s.ahead
		}
		(*from)[0].Cut()
		*from = slices.Delete(*from, 0, 1)
	}
}

// sweep closes connections that are too old. The caller holds mu.
func (s *Pool) sweep(now time.Time, idle time.Duration) {
	old := func(c *Conn) bool {
		if c.Fresh(now, idle) {
			return false
		}
		c.Cut()
		return true
	}
	s.ahead, s.kept = slices.DeleteFunc(s.ahead, old), slices.DeleteFunc(s.kept, old)
}

// Close closes the connections, and every connection that is Put or Added later.
func (s *Pool) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.shed(0)
}
