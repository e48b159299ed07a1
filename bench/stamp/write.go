//go:build linux

package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// A queue holds connections in the order in which their chunks are due. All answers have the same TTFT and the same
// ITL, so the connection added last is due last.
type queue struct {
	conns []*conn
	begun int // index of the first
}

func (q *queue) add(c *conn) {
	if q.begun > 1024 && q.begun > len(q.conns)/2 {
		q.conns = q.conns[:copy(q.conns, q.conns[q.begun:])]
		q.begun = 0
	}
	q.conns = append(q.conns, c)
}

// first returns nil if the queue is empty.
func (q *queue) first() *conn {
	for q.begun < len(q.conns) {
		if c := q.conns[q.begun]; !c.gone {
			return c
		}
		q.begun++
	}
	return nil
}

// first returns the connection whose chunk is due next, or nil.
func (l *loop) first() *conn {
	a, b := l.begin.first(), l.proceed.first()
	if a == nil || b != nil && b.due < a.due {
		return b
	}
	return a
}

// maxAtOnce caps the writes before the sockets are polled again.
const maxAtOnce = 256

// write sends the chunks that are due. A late one does not shift the later ones.
func (l *loop) write() {
	for range maxAtOnce {
		c, now := l.first(), time.Now().UnixNano()
		if c == nil || c.due > now || l.stall.until(now) > now {
			return
		}
		if c.sent == 0 {
			l.begin.begun++
		} else {
			l.proceed.begun++
		}
		l.step(c, now)
	}
}

// step sends an answer's next chunk, or its tail.
func (l *loop) step(c *conn, now int64) {
	piece := l.words.chunk[c.kind]
	switch c.sent {
	case 0:
		piece = l.words.first[c.kind]
	case c.tokens:
		piece = l.words.tail(c.kind, c.tokens)
	}
	if c.sent < c.tokens {
		c.entry.stamp(now)
	}
	switch {
	case len(c.out) > 0: // the kernel has no room, and the order must stay
		c.out = append(c.out, piece...)
	default:
		n, errno := send(c.fd, piece)
		if errno != 0 {
			l.drop(c)
			return
		}
		if n < len(piece) {
			c.out = append(c.out, piece[n:]...)
			if !l.push(c) {
				return
			}
		}
	}
	if c.sent == c.tokens {
		c.entry.end = time.Now().UnixNano()
		c.entry = nil
		l.take(c, time.Now().UnixNano())
		return
	}
	// The tail follows the last chunk at once, in a write of its own.
	if c.sent++; c.sent == c.tokens {
		l.step(c, now)
		return
	}
	c.due += int64(l.itl)
	l.proceed.add(c)
}

// push sends bytes that the kernel had no room for, and polls for room if there is still none. It returns false if the
// connection had to be dropped.
func (l *loop) push(c *conn) bool {
	events := uint32(unix.EPOLLIN | unix.EPOLLRDHUP)
	if len(c.out) > 0 {
		n, errno := send(c.fd, c.out)
		if errno != 0 {
			l.drop(c)
			return false
		}
		c.out = c.out[:copy(c.out, c.out[n:])]
	}
	if len(c.out) > 0 {
		events |= unix.EPOLLOUT
	}
	if events == c.events {
		return true
	}
	c.events = events
	if err := l.watch(unix.EPOLL_CTL_MOD, c.fd, events); err != nil {
		l.drop(c)
		return false
	}
	return true
}

// drop forgets a connection; its entry keeps the chunks that were sent.
func (l *loop) drop(c *conn) {
	if c.gone {
		return
	}
	c.gone = true
	delete(l.conns, c.fd)
	_ = unix.Close(c.fd)
}
