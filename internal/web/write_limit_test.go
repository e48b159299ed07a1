package web

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A reader reads a response in parts, with a delay before each. One that never reads is cut at its deadline.
type reader struct {
	http.ResponseWriter
	each     time.Duration // delay per part; 0: at once; below 0: never
	deadline *time.Timer
	cut      chan struct{}
}

func newReader(each time.Duration) *reader {
	r := &reader{ResponseWriter: httptest.NewRecorder(), each: each, cut: make(chan struct{})}
	r.deadline = time.AfterFunc(time.Hour, sync.OnceFunc(func() { close(r.cut) }))
	return r
}

// SetWriteDeadline is called by http.ResponseController.
func (r *reader) SetWriteDeadline(at time.Time) error {
	r.deadline.Reset(time.Until(at))
	return nil
}

func (r *reader) Write(p []byte) (int, error) {
	if r.each < 0 {
		<-r.cut
		return 0, os.ErrDeadlineExceeded
	}
	select {
	case <-time.After(r.each):
		return r.ResponseWriter.Write(p)
	case <-r.cut:
		return 0, os.ErrDeadlineExceeded
	}
}

// answer writes a response of some parts and returns the time that it took, and whether it was written whole.
func (d *writeLimit) answer(r *reader, from string, parts int) (took time.Duration, whole bool) {
	s := &bufferedResponse{header: http.Header{}}
	for range parts {
		_, _ = s.Write(make([]byte, partBytes))
	}
	s.WriteHeader(http.StatusOK)
	begin := time.Now()
	d.hand(r, &http.Request{RemoteAddr: net.JoinHostPort(from, "9")}, s, begin.Add(writeTimeout))
	r.deadline.Stop()
	return time.Since(begin), r.ResponseWriter.(*httptest.ResponseRecorder).Body.Len() == parts*partBytes
}

// A client that reads gets its response soon, however many clients do not read, and from whatever addresses.
func TestDeskOfManyWhoDoNotRead(t *testing.T) {
	for _, c := range []struct {
		from string // of visitor i
		most time.Duration
	}{
		{"10.0.0.1", 0},                       // they take slots only from one another
		{"10.0.0.%d", 550 * time.Millisecond}, // two rounds of 8
		{"10.9.9.9", 1050 * time.Millisecond}, // four rounds of 4: it comes from the same address
		{"2001:db8::%x", 0},                   // one network
		{"2001:db8:0:%x::1", 550 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			var d writeLimit
			var all sync.WaitGroup
			for i := range 16 {
				from := c.from
				if strings.Contains(from, "%") {
					from = fmt.Sprintf(from, 1+i)
				}
				all.Go(func() { d.answer(newReader(-1), from, 3) })
			}
			synctest.Wait()
			if took, whole := d.answer(newReader(0), "10.9.9.9", 3); took > c.most || !whole {
				t.Errorf("%s: want the whole answer within %v, got %v after %v", c.from, c.most, whole, took)
			}
			all.Wait()
		})
	}
}

// If no client waits, slow readers have the whole time, and those that stop reading are cut after 5 s.
func TestDeskOfSlowReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d writeLimit
		f := func(each time.Duration, parts int, want time.Duration, wantWhole bool) {
			t.Helper()
			if took, whole := d.answer(newReader(each), "10.0.0.1", parts); took != want || whole != wantWhole {
				t.Errorf("%v for each of %d parts: want %v, whole %v, got %v, %v", each, parts, want, wantWhole, took, whole)
			}
		}
		f(0, 0, 0, true)
		f(0, 100, 0, true)
		f(4*time.Second, 14, 56*time.Second, true)
		f(4*time.Second, 16, writeTimeout, false)
		f(6*time.Second, 2, stuckTime, false)
		f(-1, 1, stuckTime, false)
	})
}

// If others wait, a slow reader is cut too, and a client that waits in vain gets an error.
func TestDeskUnderPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d writeLimit
		var all sync.WaitGroup
		for range maxOfOne { // one part every 200 ms: they never stop for long
			all.Go(func() {
				if took, whole := d.answer(newReader(200*time.Millisecond), "10.0.0.1", 1000); whole || took > longTime+time.Second {
					t.Errorf("want it cut after %v, got whole %v after %v", longTime, whole, took)
				}
			})
		}
		synctest.Wait()
		<-time.After(time.Second)
		for range maxWaitOne {
			all.Go(func() {
				if took, whole := d.answer(newReader(0), "10.0.0.1", 1); !whole || took > longTime {
					t.Errorf("want the answer after %v, got whole %v after %v", longTime, whole, took)
				}
			})
		}
		synctest.Wait()
		r := newReader(0)
		d.answer(r, "10.0.0.1", 1)
		if got := r.ResponseWriter.(*httptest.ResponseRecorder); got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") != "1" {
			t.Errorf("want 503, got %d", got.Code)
		}
		if took, whole := d.answer(newReader(0), "10.0.0.2", 1); took != 0 || !whole {
			t.Errorf("want another address to have its place at once, got %v, %v", took, whole)
		}
		all.Wait()
	})
}

// Requests that arrive during a rendering share the next one, which shows all changes before their arrival.
func TestPressShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var renderings, state atomic.Int64
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			renderings.Add(1)
			fmt.Fprint(w, r.URL.Path, state.Load())
			<-time.After(time.Second)
		})
		p := newPress()
		var all sync.WaitGroup
		ask := func(path, want string) {
			all.Go(func() {
				s := p.render(h, httptest.NewRequest(http.MethodGet, path, nil))
				if got := s.body.String(); got != want || s.status != http.StatusOK {
					t.Errorf("want 200, %q, got %d, %q", want, s.status, got)
				}
			})
			synctest.Wait()
		}
		begin := time.Now()
		ask("/a", "/a0")
		ask("/a", "/a0")
		for range 20 {
			ask("/a", "/a1")
			ask("/b", "/b1")
		}
		state.Store(1)
		all.Wait()
		if took := time.Since(begin); renderings.Load() != 4 || took != 2*time.Second {
			t.Errorf("want 4 renderings in 2 s, got %d in %v", renderings.Load(), took)
		}
	})
}

// A client that never reads is cut after some seconds on a real connection too.
func TestPageThatIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := serveInBubble(t, Options{Config: func() ([]byte, error) { return make([]byte, 1<<20), nil }})
		conn, err := b.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "GET /config HTTP/1.1\r\nHost: x\r\n\r\n")
		<-time.After(stuckTime + time.Second)
		if text, err := io.ReadAll(conn); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) || len(text) >= 1<<20 {
			t.Errorf("want the connection closed, got %d bytes, %v", len(text), err)
		}
	})
}
