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
	outcome string // of a request whose answer was spoiled; "": nothing is spoiled, and nothing may be lost
	slowly  bool   // the delay spoils it
	streams bool   // only for streamed answers

	says    string        // the answer instead of the engine's, which is not requested
	slow    time.Duration // before the answer
	before  string        // interim heads before the answer
	headers string        // further lines of the head
	framing framing
	edit    func(x *exchange, n int, line []byte) (out []byte, spoiled bool) // a line of the body, from 0; nil: unchanged
	pieces  func(x *exchange, b []byte) [][]byte                             // splits a line into writes; nil: one write
	pause   func(x *exchange) time.Duration                                  // before a write; nil: none
	whole   bool                                                             // everything is written at once, at the end
	stop    func(x *exchange) int                                            // bytes after which it ends; nil: never
	last    bool                                                             // the connection ends without the last chunk
	ending  ending
}

// errStop ends the relay: the fault cuts the answer here.
var errStop = errors.New("the fault's end")

// play relays one answer. The connection is kept if possible.
func (x *exchange) play(f fault) (keep bool) {
	if f.stop != nil {
		x.stop = f.stop(x)
	}
	err := x.hand(f)
	x.judge(f)
	switch {
	case x.engine != nil: // as when the server dies: the kernel resets its connections, or closes those that it has read completely
		if x.random.IntN(2) == 0 {
			x.cutOff()
		}
		return false
	case x.left != nil:
		return false
	case errors.Is(err, errStop):
		x.over, x.stopped = true, f.ending
		switch f.ending {
		case wasReset:
			x.cutOff()
		case silent:
			x.silent()
		}
		return false
	}
	return !x.request.Close
}

// hand relays up to the end: by the engine, the client, the fault, or complete.
func (x *exchange) hand(f fault) error {
	x.spoiled = f.slowly
	if f.slow > 0 && !x.wait(f.slow) {
		x.left = errors.New("the test is over")
		return x.left
	}
	if f.says != "" {
		if err := x.give([]byte(f.says)); err != nil {
			return err
		}
		x.spoiled, x.stream = f.outcome != "", true
		return errStop
	}
	resp, err := x.ask()
	if err != nil {
		x.engine = err
		return err
	}
	defer resp.Body.Close()
	x.stream = strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	next := x.lines(f, resp.Body)
	var ready []line // of an answer that is awaited whole, because its length is needed or one write has everything
	length := 0
	if f.framing == byLength || f.whole {
		for {
			l, err := next()
			if err != nil && !errors.Is(err, io.EOF) {
				x.engine = err
				return err
			}
			ready, length = append(ready, l), length+len(l.text)
			if err != nil {
				break
			}
		}
		next = func() (l line, err error) {
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
	x.head = true
	if f.edit == nil && f.outcome != "" && f.stop == nil {
		x.spoiled = true // by its head
	}
	for more := true; more; {
		l, err := next()
		if err != nil && !errors.Is(err, io.EOF) {
			x.engine = err
			return err
		}
		more = err == nil
		if err := x.payload(f, l.text); err != nil {
			return err
		}
		x.spoiled = x.spoiled || l.spoiled
	}
	if !f.last && f.framing == byChunks {
		if err := x.give([]byte("0\r\n\r\n")); err != nil {
			return err
		}
		x.complete = true
	}
	x.complete = x.complete || f.framing == byLength
	if err := x.flush(); err != nil {
		return err
	}
	if f.last || f.framing == byClose {
		return errStop
	}
	return nil
}

// A line of a body, after the fault.
type line struct {
	text    []byte
	spoiled bool // it spoils the answer
}

// lines returns the lines one by one, the last one with io.EOF.
func (x *exchange) lines(f fault, body io.Reader) func() (line, error) {
	in, n := bufio.NewReader(body), -1
	return func() (l line, err error) {
		n++
		l.text, err = in.ReadBytes('\n')
		if f.edit != nil && len(l.text) > 0 {
			l.text, l.spoiled = f.edit(x, n, l.text)
		}
		return l, err
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
			x.left = errors.New("the test is over")
			return x.left
		}
		framed, at := piece, 0
		if f.framing == byChunks {
			size := fmt.Appendf(nil, "%x\r\n", len(piece))
			if x.misframed {
				size = []byte("zz\r\n")
			}
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
	_, x.left = x.client.Write(x.held)
	x.held = x.held[:0]
	return x.left
}
