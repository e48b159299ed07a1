package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/test/outside"
)

// A bubble is a server in virtual time.
type bubble struct {
	*outside.Pipes
	client http.Client
	stop   context.CancelFunc
	ended  chan error
}

func serveInBubble(t *testing.T, o Options) *bubble {
	t.Helper()
	o.Registry, o.Log = prometheus.NewRegistry(), slog.New(slog.DiscardHandler)
	p := outside.NewPipes()
	s, err := newServer(o, "http", p)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	transport := &http.Transport{DialContext: p.Dial}
	b := &bubble{p, http.Client{Transport: transport}, stop, make(chan error, 1)}
	go func() {
		b.ended <- s.Run(ctx)
		close(b.ended)
	}()
	t.Cleanup(func() {
		stop()
		b.client.CloseIdleConnections()
		for range b.ended { // wait until all its goroutines have ended
		}
	})
	return b
}

func (b *bubble) open(t *testing.T, method, path string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := b.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// ticks streams one line every 30 s, and a last line when its request's context ends.
func ticks(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	tick := time.NewTicker(30 * time.Second)
	defer tick.Stop()
	for {
		err := errors.Join(control.SetWriteDeadline(time.Now().Add(15*time.Second)), control.Flush())
		if err != nil {
			panic(err)
		}
		select {
		case <-tick.C:
			fmt.Fprintln(w, "tick")
		case <-r.Context().Done():
			fmt.Fprintln(w, "bye")
			return
		}
	}
}

// A stream may last many times the write timeout, and ends at once when the server stops.
func TestStreamLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := serveInBubble(t, Options{Live: http.HandlerFunc(ticks)})
		resp := b.open(t, http.MethodGet, "/live/events")
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		begin := time.Now()
		for i := range 40 {
			if !lines.Scan() || lines.Text() != "tick" {
				t.Fatalf("line %d: want tick, got %q, %v", i, lines.Text(), lines.Err())
			}
		}
		if took := time.Since(begin); took != 20*time.Minute {
			t.Errorf("40 ticks of 30 s: want 20m, took %v", took)
		}
		stopping := time.Now()
		b.stop()
		if !lines.Scan() || lines.Text() != "bye" || lines.Scan() || lines.Err() != nil {
			t.Errorf("want a bye and a proper end, got %q, %v", lines.Text(), lines.Err())
		}
		if took := time.Since(stopping); took != 0 {
			t.Errorf("want the stream to end at once, it took %v", took)
		}
		if err := <-b.ended; err != nil {
			t.Errorf("want a clean end, got %v", err)
		}
		// Shutdown polls for idle connections every few milliseconds.
		if took := time.Since(stopping); took > 100*time.Millisecond {
			t.Errorf("want the server to end at once, it took %v", took)
		}
	})
}

// An endless response is cut after the grace period, which is no error.
func TestStopCuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endless := make(chan struct{})
		b := serveInBubble(t, Options{Live: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			<-endless
		})})
		resp := b.open(t, http.MethodGet, "/live")
		defer resp.Body.Close()
		stopping := time.Now()
		b.stop()
		if err := <-b.ended; err != nil {
			t.Errorf("want a clean end, got %v", err)
		}
		if took := time.Since(stopping); took != closing {
			t.Errorf("want %v, took %v", closing, took)
		}
		if _, err := io.ReadAll(resp.Body); err == nil {
			t.Error("want the stream cut")
		}
		close(endless)
	})
}

// The write timeout applies whatever the handler does. A reload has no time limit.
func TestWriteTimeout(t *testing.T) {
	const long = 5 * time.Minute
	o := Options{
		Lifecycle: true,
		Reload:    func(context.Context) error { <-time.After(long); return errors.New("one\ntwo") },
		Config:    func() ([]byte, error) { <-time.After(long); return nil, nil },
	}
	f := func(t *testing.T, b *bubble, protocol string) {
		begin := time.Now()
		resp := b.open(t, http.MethodPost, "/-/reload")
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if want := "The configuration is not reloaded:\none\ntwo\n"; err != nil || string(text) != want || resp.StatusCode != http.StatusInternalServerError || resp.Proto != protocol {
			t.Errorf("want %q, got %s, %s, %q, %v", want, resp.Proto, resp.Status, text, err)
		}
		if took := time.Since(begin); took != long {
			t.Errorf("want the answer after %v, took %v", long, took)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/config", nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := b.client.Do(req); err == nil {
			resp.Body.Close()
			t.Errorf("want no answer after %v, got %s", long, resp.Status)
		}
		<-time.After(long) // wait until the handler has returned
	}
	synctest.Test(t, func(t *testing.T) { f(t, serveInBubble(t, o), "HTTP/1.1") })
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		client := outside.Certificate(t, dir)
		o.ConfigFile = write(t, dir, "web.yaml", tlsSection)
		b := serveInBubble(t, o)
		transport := client.Transport.(*http.Transport)
		transport.DialContext, transport.ForceAttemptHTTP2 = b.Dial, true
		b.client.Transport = secure{transport}
		f(t, b, "HTTP/2.0")
	})
}

// secure sends http URLs over TLS.
type secure struct{ *http.Transport }

func (s secure) RoundTrip(r *http.Request) (*http.Response, error) {
	r.URL.Scheme = "https"
	return s.Transport.RoundTrip(r)
}

// The answer to a reload has the usual write timeout.
func TestReloadThatIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := serveInBubble(t, Options{Lifecycle: true, Reload: func(context.Context) error { <-time.After(time.Hour); return nil }})
		conn, err := b.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "POST /-/reload HTTP/1.1\r\nHost: x\r\n\r\n")
		<-time.After(time.Hour + writeTimeout + time.Second)
		if text, err := io.ReadAll(conn); err != nil || len(text) > 0 {
			t.Errorf("want the connection closed, got %q, %v", text, err)
		}
	})
}

// An announced body that never arrives does not hold the connection forever.
func TestBodyThatNeverComes(t *testing.T) {
	for _, request := range []string{"GET /-/healthy", "POST /-/pause"} {
		synctest.Test(t, func(t *testing.T) {
			b := serveInBubble(t, Options{Lifecycle: true, Pause: func(context.Context, string, bool) error {
				t.Error("paused")
				return nil
			}})
			conn, err := b.Dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			begin := time.Now()
			fmt.Fprint(conn, request+" HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\n\r\n")
			text, err := io.ReadAll(conn)
			if err != nil || !strings.Contains(string(text), "Connection: close\r\n") {
				t.Errorf("%s: want an answer and the connection closed, got %q, %v", request, text, err)
			}
			if took := time.Since(begin); took < readTimeout || took > readTimeout+time.Second {
				t.Errorf("%s: want it closed after %v, took %v", request, readTimeout, took)
			}
		})
	}
}
