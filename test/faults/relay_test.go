//go:build faults

package faults_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// A framing is how the length of a body is given.
type framing int

const (
	byChunks framing = iota
	byLength         // the whole body is awaited
	byClose
)

// An ending is how a connection that is not kept ends.
type ending int

const (
	closed ending = iota
	wasReset
	silent // no more bytes come, and it stays open
)

// A fault is a way to relay an answer.
type fault struct {
	name    string
	says    string        // the answer instead of the engine's, which is not requested
	slow    time.Duration // before the answer
	before  string        // interim heads before the answer
	headers string        // further lines of the head
	framing framing
	edit    func(line []byte) []byte             // of the body; nil: unchanged
	pieces  func(x *exchange, b []byte) [][]byte // splits a line into writes; nil: one write
	pause   func(x *exchange) time.Duration      // before a write; nil: none
	whole   bool                                 // everything is written at once, at the end
	stop    func(x *exchange) int                // bytes after which it ends; nil: never
	last    bool                                 // the connection ends without the last chunk
	ending  ending
}

var (
	// errStop ends the relay: the fault cuts the answer here.
	errStop = errors.New("the fault's end")
	errOver = errors.New("the test is over")
)

// play relays one answer. The connection is kept if possible.
func (x *exchange) play(f fault) (keep bool) {
	if f.stop != nil {
		x.stop = f.stop(x)
	}
	err := x.hand(f)
	x.read()
	if errors.Is(err, errStop) {
		switch f.ending {
		case wasReset:
			x.cutOff()
		case silent:
			x.silent()
		}
	}
	return err == nil && !x.request.Close
}

// hand relays up to the end: by the engine, the client, the fault, or complete.
func (x *exchange) hand(f fault) error {
	if f.slow > 0 && !x.wait(f.slow) {
		return errOver
	}
	if f.says != "" {
		if err := x.give([]byte(f.says)); err != nil {
			return err
		}
		return errStop
	}
	resp, err := x.ask()
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	next := lines(f, resp.Body)
	var ready [][]byte // of an answer that is awaited whole, because its length is needed or one write has everything
	length := 0
	if f.framing == byLength || f.whole {
		for {
			l, err := next()
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			ready, length = append(ready, l), length+len(l)
			if err != nil {
				break
			}
		}
		next = func() (l []byte, err error) {
			if l, ready = ready[0], ready[1:]; len(ready) == 0 {
				err = io.EOF
			}
			return l, err
		}
	}
	x.together = f.whole
	if err := x.give([]byte(f.before + x.headOf(f, resp, length))); err != nil {
		return err
	}
	for more := true; more; {
		l, err := next()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		more = err == nil
		if err := x.payload(f, l); err != nil {
			return err
		}
	}
	if !f.last && f.framing == byChunks {
		if err := x.give([]byte("0\r\n\r\n")); err != nil {
			return err
		}
	}
	if err := x.flush(); err != nil {
		return err
	}
	if f.last || f.framing == byClose {
		return errStop
	}
	return nil
}

// lines returns the lines of a body one by one, the last one with io.EOF.
func lines(f fault, body io.Reader) func() ([]byte, error) {
	in := bufio.NewReader(body)
	return func() (line []byte, err error) {
		line, err = in.ReadBytes('\n')
		if f.edit != nil && len(line) > 0 {
			line = f.edit(line)
		}
		return line, err
	}
}

// headOf returns the answer's head: the engine's, framed by the fault.
func (x *exchange) headOf(f fault, resp *http.Response, length int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %s\r\n%s", resp.Status, f.headers)
	for name := range resp.Header {
		if name != "Content-Length" && name != "Connection" && !strings.Contains(f.headers, name+":") {
			fmt.Fprintf(&b, "%s: %s\r\n", name, resp.Header.Get(name))
		}
	}
	switch f.framing {
	case byChunks:
		b.WriteString("Transfer-Encoding: chunked\r\n")
	case byLength:
		fmt.Fprintf(&b, "Content-Length: %d\r\n", length)
	case byClose:
		b.WriteString("Connection: close\r\n")
	}
	return b.String() + "\r\n"
}

// payload gives a part of the body to the client.
func (x *exchange) payload(f fault, line []byte) error {
	pieces := [][]byte{line}
	if f.pieces != nil {
		pieces = f.pieces(x, line)
	}
	for _, piece := range pieces {
		if len(piece) == 0 {
			continue
		}
		if f.pause != nil && !x.wait(f.pause(x)) {
			return errOver
		}
		framed, at := piece, 0
		if f.framing == byChunks {
			size := fmt.Appendf(nil, "%x\r\n", len(piece))
			at = len(size)
			framed = append(append(size, piece...), "\r\n"...)
		}
		before := x.bytes
		err := x.give(framed)
		x.given = append(x.given, piece[:min(max(x.bytes-before-at, 0), len(piece))]...)
		if err != nil {
			return err
		}
	}
	return nil
}

// give writes bytes unchanged, as many as the fault lets through.
func (x *exchange) give(b []byte) error {
	var stopped error
	if x.stop >= 0 && x.bytes+len(b) >= x.stop {
		b, stopped = b[:x.stop-x.bytes], errStop
	}
	x.bytes += len(b)
	x.held = append(x.held, b...)
	if !x.together || stopped != nil {
		if err := x.flush(); err != nil {
			return err
		}
	}
	return stopped
}

// flush writes the held bytes.
func (x *exchange) flush() error {
	if len(x.held) == 0 {
		return nil
	}
	_, err := x.client.Write(x.held)
	x.held = x.held[:0]
	return err
}
