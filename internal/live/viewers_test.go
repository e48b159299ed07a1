package live

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
)

// A pipes is a listener without a network, so that a stream runs
// in virtual time: a write waits until the other side reads.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, open := <-p
	if !open {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.IPAddr{} }

// serve serves a Board with an http.Server that has the deadlines of the real one.
func serve(t *testing.T, b *Board) pipes {
	t.Helper()
	p := make(pipes)
	s := &http.Server{Handler: b.Handler(), WriteTimeout: 60 * time.Second}
	ended := make(chan error)
	go func() { ended <- s.Serve(p) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the server ended with %v", err)
		}
	})
	return p
}

// A stream is an answer whose headers were read.
type stream struct {
	status string
	header textproto.MIMEHeader
	body   *bufio.Reader
	conn   net.Conn
}

// watch requests the event stream.
func watch(t *testing.T, p pipes) stream {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { _ = near.Close() })
	p <- far
	fmt.Fprint(near, "GET /live/events HTTP/1.1\r\nHost: x\r\n\r\n")
	r := bufio.NewReader(near)
	head := textproto.NewReader(r)
	status, err := head.ReadLine()
	if err != nil {
		t.Fatal(err)
	}
	header, err := head.ReadMIMEHeader()
	if err != nil {
		t.Fatal(err)
	}
	return stream{strings.TrimPrefix(status, "HTTP/1.1 "), header, bufio.NewReader(httputil.NewChunkedReader(r)), near}
}

// events reads a stream until it ends and returns the names and data of its events.
func (s stream) events(t *testing.T) (names []string, data [][]byte) {
	t.Helper()
	for {
		name, err := s.body.ReadString('\n')
		if err != nil {
			return names, data
		}
		text, _ := s.body.ReadString('\n')
		if blank, _ := s.body.ReadString('\n'); !strings.HasPrefix(name, "event: ") || !strings.HasPrefix(text, "data: ") || blank != "\n" {
			t.Errorf("want an event, got %q, %q, %q", name, text, blank)
		}
		names = append(names, strings.TrimSpace(strings.TrimPrefix(name, "event: ")))
		data = append(data, []byte(strings.TrimPrefix(text, "data: ")))
	}
}

// TestAViewer: a viewer gets the whole page, then the changes of each second, and the whole page again when a workload
// is added. When Run ends, it ends the stream and waits for it.
func TestAViewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{Version: "1.2.3"})
		p := serve(t, b)
		f := newFeed(b, WorkloadOptions{Name: "a"})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- b.Run(ctx) }()
		pass(1500 * ms)

		s := watch(t, p)
		if kind := s.header.Get("Content-Type"); s.status != "200 OK" || kind != "text/event-stream" || s.header.Get("Cache-Control") != "no-store" {
			t.Fatalf("got %s %v", s.status, s.header)
		}
		var names []string
		var data [][]byte
		read := make(chan struct{})
		go func() {
			names, data = s.events(t)
			close(read)
		}()
		pass(3 * second) // the ticks of 2, 3 and 4 s
		f.end(measure.HTTP5xx, 0, 0, "no")
		b.Note(time.Now(), slog.LevelWarn, "careful")
		pass(second) // 5 s: a slot is over
		newFeed(b, WorkloadOptions{Name: "b"})
		pass(90 * second) // longer than the server's own WriteTimeout
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		<-read

		if got := strings.Join(names[:8], " "); got != "all news news news news all news news" || len(names) != 1+94 {
			t.Fatalf("%d events, the first %s", len(names), got)
		}
		var all, tick heard
		for i, into := range map[int]*heard{5: &all, 4: &tick} {
			if err := json.Unmarshal(data[i], into); err != nil {
				t.Fatal(err)
			}
		}
		if len(all.Workloads) != 2 || all.Workloads[1].Name != "b" || len(all.Notes) != 1 {
			t.Errorf("after the second came: %s", data[5])
		}
		if w := tick.Workloads[0]; len(tick.Notes) != 1 || tick.Notes[0].Text != "careful" || len(w.Rows) != 1 || len(w.Failures) != 1 || w.Failures[0].Text != "no" {
			t.Errorf("news of the fifth second: %s", data[4])
		}
		if strings.Contains(string(data[3]), `"notes"`) || strings.Contains(string(data[3]), `"rows"`) || strings.Contains(string(data[3]), `"failures"`) {
			t.Errorf("news without anything new: %s", data[3])
		}
	})
}

// A heard has the parts of an event that the test checks.
type heard struct {
	Workloads []struct {
		Name     string
		Rows     [][]any
		Failures []struct{ Text string }
	}
	Notes []struct{ Text string }
}

// TestASlowViewer: a viewer that does not read is dropped 15 s after a write began, and delays nobody.
func TestASlowViewer(t *testing.T) {
	run(t, func(t *testing.T, b *Board) {
		p := serve(t, b)
		newFeed(b, WorkloadOptions{Name: "a"})
		watch(t, p) // reads the headers and with them the first event, but no later event
		quick := watch(t, p)
		seen := make(chan int)
		go func() {
			names, _ := quick.events(t)
			seen <- len(names)
		}()
		viewers := func(want int) {
			t.Helper()
			b.mu.Lock()
			defer b.mu.Unlock()
			if len(b.viewers) != want {
				t.Errorf("%d viewers, want %d", len(b.viewers), want)
			}
		}
		pass(second + takeTime - 1)
		viewers(2)
		pass(1)
		viewers(1)
		t.Cleanup(func() { <-seen })
	})
}

// TestTooManyPending: a viewer that reads too slowly is dropped when too many ticks are pending.
func TestTooManyPending(t *testing.T) {
	b := New(Options{})
	stream := http.NewResponseController(deadlines{})
	v, _, joined := b.join("10.0.0.1", stream)
	if !joined {
		t.Fatal("not joined")
	}
	for range maxPending {
		b.send([]byte("x"))
	}
	if _, there := b.viewers[v]; !there {
		t.Fatalf("gone with %d ticks pending", maxPending)
	}
	b.send([]byte("x"))
	if _, there := b.viewers[v]; there {
		t.Errorf("still there with %d ticks pending", maxPending+1)
	}
	n := 0
	for range v.events { // it was closed
		n++
	}
	if n != maxPending {
		t.Errorf("%d events, want %d", n, maxPending)
	}
	b.leave(v)
}

// deadlines is a ResponseWriter that only takes deadlines.
type deadlines struct{ http.ResponseWriter }

func (deadlines) SetWriteDeadline(time.Time) error { return nil }

func TestTooManyViewers(t *testing.T) {
	run(t, func(t *testing.T, b *Board) {
		p := serve(t, b)
		var first net.Conn
		for range maxViewers {
			s := watch(t, p)
			if s.status != "200 OK" {
				t.Fatalf("got %s", s.status)
			}
			if first == nil {
				first = s.conn
			}
			go func() { _, _ = io.Copy(io.Discard, s.body) }()
		}
		another := func(want string) {
			t.Helper()
			if s := watch(t, p); s.status != want {
				t.Errorf("got %s, want %s", s.status, want)
			}
		}
		another("503 Service Unavailable")
		_ = first.Close()
		pass(2 * second) // its stream ends with its connection
		another("200 OK")
	})
}

// TestViewersOfManyHosts: viewers of one host, or of a few, keep
// out no viewer of another host. Among equals the first stay.
func TestViewersOfManyHosts(t *testing.T) {
	b := New(Options{})
	stream := http.NewResponseController(deadlines{})
	var all []*viewer
	join := func(host string, want bool) {
		t.Helper()
		v, _, joined := b.join(host, stream)
		if joined != want {
			t.Errorf("%s: want %v, got %v", host, want, joined)
		}
		if joined {
			all = append(all, v)
		}
	}
	for range maxViewers {
		join("10.0.0.1", true)
	}
	join("10.0.0.1", false)
	for range maxViewers / 2 {
		join("10.0.0.2", true)
	}
	join("10.0.0.2", false)
	join("10.0.0.1", false)
	join("10.0.0.3", true)
	if len(b.viewers) != maxViewers {
		t.Errorf("want %d viewers, got %d", maxViewers, len(b.viewers))
	}
	for i, v := range all {
		if _, there := b.viewers[v]; there != (i > maxViewers/2) {
			t.Errorf("viewer %d of %s: still there: %v", i, v.from, there)
		}
		b.leave(v)
	}
}

// TestTheEndWaitsForNobody: a viewer that does not read delays the end by a second at most.
func TestTheEndWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{})
		p := serve(t, b)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- b.Run(ctx) }()
		watch(t, p)
		pass(2500 * ms)
		start := time.Now()
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != lastTime {
			t.Errorf("it took %v, want %v", took, lastTime)
		}
		if s := watch(t, p); s.status != "503 Service Unavailable" {
			t.Errorf("after the end: got %s, want 503", s.status)
		}
	})
}

func TestHeadOfTheStreamEnds(t *testing.T) {
	run(t, func(t *testing.T, b *Board) {
		r := get(b, http.MethodHead, "/live/events", nil)
		if r.Code != http.StatusOK || r.Header().Get("Content-Type") != "text/event-stream" {
			t.Errorf("got %d %v", r.Code, r.Header())
		}
	})
}
