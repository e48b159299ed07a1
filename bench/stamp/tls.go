//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A wire is a TCP connection under TLS that records the times of its reads and writes.
type wire struct {
	*net.TCPConn
	raw     syscall.RawConn
	in      receiver
	arrival int64 // kernel timestamp of the last segment read, ns since the Unix epoch; 0: none
	written int64 // just before the last write
}

func newWire(c *net.TCPConn) (*wire, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	w := &wire{TCPConn: c, raw: raw}
	var refused error
	err = raw.Control(func(fd uintptr) {
		refused = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	})
	return w, errors.Join(err, refused)
}

func (w *wire) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	var errno syscall.Errno
	err = w.raw.Read(func(fd uintptr) bool {
		n, w.arrival, errno = w.in.receive(int(fd), p)
		return errno != syscall.EAGAIN
	})
	switch {
	case err != nil:
		return 0, err
	case errno != 0:
		return 0, os.NewSyscallError("recvmsg", errno)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

func (w *wire) Write(p []byte) (int, error) {
	w.written = time.Now().UnixNano()
	return w.TCPConn.Write(p)
}

// A keeper is the server over TLS.
type keeper struct {
	settings
	book *book

	mu    sync.Mutex
	words *wording // its tails are made on demand
	open  map[*wire]bool
}

// serveTLS serves until ctx ends.
func serveTLS(ctx context.Context, listener net.Listener, s settings, b *book) error {
	pair, err := tls.LoadX509KeyPair(s.cert, s.key)
	if err != nil {
		return err
	}
	k := &keeper{settings: s, book: b, words: newWording(s.chunkBytes), open: map[*wire]bool{}}
	stop := context.AfterFunc(ctx, func() {
		_ = listener.Close()
		k.mu.Lock()
		defer k.mu.Unlock()
		for w := range k.open {
			_ = w.Close()
		}
	})
	defer stop()
	var conns sync.WaitGroup
	defer conns.Wait()
	for {
		c, err := listener.Accept()
		if ctx.Err() != nil {
			if err == nil {
				_ = c.Close()
			}
			return nil
		}
		if err != nil {
			return err
		}
		w, err := newWire(c.(*net.TCPConn))
		if err != nil {
			_ = c.Close()
			return err
		}
		k.mu.Lock()
		k.open[w] = true
		k.mu.Unlock()
		conns.Go(func() {
			// The reason why a connection ends is the client's business.
			_ = k.converse(ctx, w, tls.Server(w, &tls.Config{Certificates: []tls.Certificate{pair}}))
			_ = w.Close()
			k.mu.Lock()
			defer k.mu.Unlock()
			delete(k.open, w)
		})
	}
}

// converse answers one request after the other.
func (k *keeper) converse(ctx context.Context, w *wire, c *tls.Conn) error {
	var got []byte
	buffer := make([]byte, 16<<10)
	for ctx.Err() == nil {
		r, n, err := readRequest(got)
		if err != nil {
			return err
		}
		if n == 0 {
			read, err := c.Read(buffer)
			if err != nil {
				return err
			}
			got = append(got, buffer[:read]...)
			continue
		}
		got = got[:copy(got, got[n:])]
		if r.stream {
			err = k.stream(ctx, w, c, r)
		} else {
			_, err = c.Write(r.whole())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stream sends an answer, chunk by chunk.
func (k *keeper) stream(ctx context.Context, w *wire, c *tls.Conn, r request) error {
	now := time.Now().UnixNano()
	tokens := k.tokens
	if r.tokens > 0 {
		tokens = min(tokens, r.tokens)
	}
	k.mu.Lock()
	if k.stall.first == 0 {
		k.stall.first = now
	}
	quiet, tail := k.stall, k.words.tail(r.kind, tokens)
	k.mu.Unlock()
	e := k.book.open(r.id, w.arrival, now, tokens)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range tokens {
		due := quiet.until(max(time.Now().UnixNano(), now+int64(k.ttft)+int64(i)*int64(k.itl)))
		timer.Reset(time.Duration(due - time.Now().UnixNano()))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		piece := k.words.chunk[r.kind]
		if i == 0 {
			piece = k.words.first[r.kind]
		}
		if _, err := c.Write(piece); err != nil {
			return err
		}
		e.stamp(w.written)
	}
	if _, err := c.Write(tail); err != nil {
		return err
	}
	e.end = time.Now().UnixNano()
	return nil
}
