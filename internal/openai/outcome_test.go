package openai

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/config"

	"replayd/internal/measure"
	"replayd/test/outside"
	"replayd/test/wiretest"
)

// lengths returns an answer with the lines of its length.
func lengths(values ...string) string {
	body := delta("a") + done
	var lines strings.Builder
	for _, v := range values {
		fmt.Fprintf(&lines, "Content-Length: "+v+"\r\n", len(body))
	}
	return "HTTP/1.1 200 OK\r\n" + lines.String() + "Content-Type: text/event-stream\r\n\r\n" + body
}

// Every outcome that depends on the bytes from the server, over loopback TCP.
func TestOutcomes(t *testing.T) {
	plain := func(status, kind, body string) string {
		return "HTTP/1.1 " + status + "\r\nContent-Type: " + kind + "\r\nConnection: close\r\n\r\n" + body
	}
	stream := func(events string) string { return streamHead + chunked(events) + bodyEnd }
	for name, c := range map[string]struct {
		answer  string
		outcome measure.Outcome
		text    string // a part of the error text
		chunks  int
	}{
		"ok":                        {stream(delta("a") + finish("stop") + done), measure.OK, "", 1},
		"ok by [DONE]":              {stream(delta("a") + done), measure.OK, "", 1},
		"ok by finish reason":       {stream(delta("a") + finish("stop")), measure.OK, "", 1},
		"finish, then cut":          {streamHead + chunked(delta("a")+finish("stop")), measure.OK, "", 1},
		"finish, then half data":    {stream(delta("a") + finish("stop") + `data: {"cho`), measure.OK, "", 1},
		"without chunked":           {plain("200 OK", "text/event-stream", delta("a")+done), measure.OK, "", 1},
		"no end of the line":        {plain("200 OK", "text/event-stream", delta("a")+"data: [DONE]"), measure.OK, "", 1},
		"HTTP/1.0":                  {strings.Replace(plain("200 OK", "Text/Event-Stream", delta("a")+done), "1.1", "1.0", 1), measure.OK, "", 1},
		"continue":                  {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + stream(delta("a")+done), measure.OK, "", 1},
		"head of 10 KB":             {strings.Replace(stream(delta("a")+done), "\r\n", "\r\nX-Long: "+strings.Repeat("x", 10<<10)+"\r\n", 1), measure.OK, "", 1},
		"content-encoding identity": {strings.Replace(stream(delta("a")+done), "\r\n", "\r\nContent-Encoding: identity\r\n", 1), measure.OK, "", 1},

		"redirect":      {"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://user:pass@else.where/v1?key=k\r\nContent-Length: 0\r\n\r\n", measure.HTTP3xx, "HTTP 307: redirects are not followed: http://user:xxxxx@else.where/v1", 0},
		"bad redirect":  {"HTTP/1.1 302 Found\r\nLocation: http://%zz\r\nContent-Length: 0\r\n\r\n", measure.HTTP3xx, "an invalid Location", 0},
		"400 object":    {plain("400 Bad Request", "application/json", `{"error":{"message":"too long","code":400}}`), measure.HTTP4xx, "HTTP 400: too long", 0},
		"400 string":    {plain("400 Bad Request", "application/json", `{"error":"unknown field"}`), measure.HTTP4xx, "HTTP 400: unknown field", 0},
		"422 detail":    {plain("422 Unprocessable", "application/json", `{"detail":[{"loc":["body"]}]}`), measure.HTTP4xx, `HTTP 422: [{"loc":["body"]}]`, 0},
		"400 message":   {plain("400 Bad Request", "application/json", `{"object":"error","message":"no"}`), measure.HTTP4xx, "HTTP 400: no", 0},
		"401 echoes us": {plain("401 Unauthorized", "application/json", `{"error":{"message":"bad key s3cret-key"}}`), measure.HTTP4xx, "HTTP 401: bad key <secret>", 0},
		"404 text":      {plain("404 Not Found", "text/plain", "404 page\x00 not\r\n found"), measure.HTTP4xx, "HTTP 404: 404 page not found", 0},
		"400 huge":      {plain("400 Bad Request", "text/plain", strings.Repeat("é", 1<<20)), measure.HTTP4xx, "éé…", 0},
		"429":           {plain("429 Too Many", "application/json", `{"error":{"message":"slow down"}}`), measure.HTTP429, "HTTP 429: slow down", 0},
		"503":           {plain("503 Unavailable", "application/json", `{}`), measure.HTTP5xx, "HTTP 503: {}", 0},
		"529":           {plain("529 Overloaded", "text/plain", ``), measure.HTTP5xx, "HTTP 529:", 0},
		"status 600":    {plain("600 What", "text/plain", ``), measure.BadStream, "got 600", 0},
		"status 101":    {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", measure.BadStream, "got 101", 0},

		"closes at once":      {"", measure.NoAnswer, "before any byte of an answer", 0},
		"ends in its head":    {"HTTP/1.1 200 OK\r\nContent-Ty", measure.Truncated, "ended within its head", 0},
		"ends in two bytes":   {"HT", measure.Truncated, "ended within its head", 0},
		"ends after its head": {streamHead, measure.Truncated, "cut off", 0},
		"ends in the stream":  {streamHead + chunked(delta("a")), measure.Truncated, "cut off", 1},
		"ends in a line":      {streamHead + chunked(delta("a")+`data: {"choi`), measure.Truncated, "cut off", 1},
		"no proper end":       {stream(delta("a")), measure.Truncated, "without [DONE]", 1},
		"no proper end, half": {stream(delta("a") + `data: {"choi`), measure.Truncated, "without [DONE]", 1},
		"short of its length": {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\n" + delta("a"), measure.Truncated, "cut off", 1},
		"nothing at all":      {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 0\r\n\r\n", measure.Truncated, "without [DONE]", 0},

		"HTML": {
			plain("200 OK", "text/html; charset=utf-8", "<html>hi</html>"), measure.BadStream,
			`want content type text/event-stream, got "text/html": <html>hi</html>`, 0,
		},
		"JSON": {
			plain("200 OK", "application/json", `{"error":{"message":"model not loaded"}}`),
			measure.ErrorEvent, `model not loaded`, 0,
		},
		"JSON error, no type": {
			"HTTP/1.1 200 OK\r\n\r\n" + `{"error":{"message":"model not loaded"}}`,
			measure.ErrorEvent, `model not loaded`, 0,
		},
		"JSON error, no type, chunked": {
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(`{"error":"br`) + chunked(`oken"}`) + bodyEnd,
			measure.ErrorEvent, `broken`, 0,
		},
		"JSON, no type": {
			"HTTP/1.1 200 OK\r\n\r\n{}", measure.BadStream, `want content type text/event-stream, got "": {}`, 0,
		},
		"no type, broken chunks": {
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz", measure.BadStream, "broken chunked", 0,
		},
		"no type, no body": {"HTTP/1.1 200 OK\r\n\r\n", measure.Truncated, "without [DONE]", 0},
		"no content":       {"HTTP/1.1 204 No Content\r\n\r\n", measure.BadStream, `want content type`, 0},
		"garbage":          {"SSH-2.0-OpenSSH_9.2\r\n", measure.BadStream, `not an HTTP answer: "SSH-2.0`, 0},
		"garbage head":     {"HTTP/1.1 200 OK\r\nbroken header line\r\n\r\n", measure.BadStream, "missing colon", 0},
		"two lengths":      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde", measure.BadStream, "duplicate content-length header", 0},
		"equal lengths":    {lengths("%d", "%[1]d"), measure.OK, "", 1},
		"a list of them":   {lengths("%d, %[1]d"), measure.OK, "", 1},
		"HTTP/2, settings": {"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x80", measure.BadStream, "the server speaks HTTP/2 only", 0},
		"HTTP/2, goaway":   {"\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00", measure.BadStream, "the server speaks HTTP/2 only", 0},
		"binary garbage":   {"\x15\x03\x01\x00\x02\x02\x16", measure.BadStream, "not an HTTP answer", 0},
		"head of 20 KB":    {"HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("x", 20<<10) + "\r\n\r\n", measure.BadStream, "over 16 KiB", 0},
		"gzip":             {strings.Replace(stream("\x1f\x8b"), "\r\n", "\r\nContent-Encoding: gzip\r\n", 1), measure.BadStream, `got "gzip"`, 0},
		"gzip, chunked":    {strings.Replace(stream("\x1f\x8b"), "chunked", "gzip, chunked", 1), measure.BadStream, `unsupported transfer-encoding: "gzip, chunked"`, 0},
		"no JSON":          {stream(delta("a") + "data: hello\n\n"), measure.BadStream, `want a JSON object in a data line, got "hello"`, 1},
		"a JSON number":    {stream("data: 7\n\n"), measure.BadStream, `got "7"`, 0},
		"broken chunks":    {streamHead + chunked(delta("a")) + "zz\r\n", measure.BadStream, "broken chunked", 1},
		"interim forever":  {strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 5000), measure.BadStream, "over 64 KiB of interim ones", 0},
		"15 heartbeats":    {strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 15) + stream(delta("a")+done), measure.OK, "", 1},
		"line over 8 MiB": {
			plain("200 OK", "text/event-stream", "data: "+strings.Repeat("x", 9<<20)), measure.BadStream, "over 8 MiB", 0,
		},
		"error in it":      {stream(delta("a") + `data: {"error":{"message":"broken"}}` + "\n\n" + done), measure.ErrorEvent, "broken", 1},
		"error event":      {stream("event: error\ndata: it broke\n\n"), measure.ErrorEvent, "event: error: it broke", 0},
		"error event JSON": {stream("event: error\ndata: {\"error\":\"it broke\"}\n\n"), measure.ErrorEvent, "it broke", 0},
		"error, then cut":  {streamHead + chunked(`data: {"error":"broken"}`+"\n\n"), measure.ErrorEvent, "broken", 0},

		"empty":            {stream(done), measure.Empty, "no content", 0},
		"empty, usage":     {stream(delta("") + finish("stop") + `data: {"choices":[],"usage":{"completion_tokens":5}}` + "\n\n" + done), measure.Empty, "no content", 0},
		"empty by comment": {stream(": ping\n\n" + done), measure.Empty, "no content", 0},
	} {
		t.Run(name, func(t *testing.T) {
			address := wiretest.Listen(t, "tcp4", func(conn net.Conn) {
				if _, _, err := request(conn); err == nil {
					send(conn, c.answer)
				}
			})
			auth := &config.Authorization{Type: "Bearer", Credentials: "s3cret-key"}
			client := newClient(t, Target{Options: Options{
				URL: address, Timeouts: limits,
				HTTP: config.HTTPClientConfig{Authorization: auth},
			}})
			l := client.Lane()
			defer l.Close()
			var req measure.Request
			do(t, l, &req)
			if req.Outcome != c.outcome || !strings.Contains(string(req.Error), c.text) || len(req.Timeline.Chunks) != c.chunks || req.Retried {
				t.Errorf("want %s with %q and %d chunks, got %s with %q and %d", c.outcome, c.text, c.chunks, req.Outcome, req.Error, len(req.Timeline.Chunks))
			}
			if strings.Contains(string(req.Error), "s3cret") {
				t.Errorf("the key is in %q", req.Error)
			}
			if c.chunks > 0 && req.Usage.Source == "" {
				t.Error("chunks came, and are not counted")
			}
		})
	}
}

// A reset has the same outcome as a close. Only the error text differs.
func TestOutcomeReset(t *testing.T) {
	for name, c := range map[string]struct {
		answer  string
		outcome measure.Outcome
	}{
		"at once":       {"", measure.NoAnswer},
		"in the stream": {streamHead + chunked(delta("a")), measure.Truncated},
	} {
		t.Run(name, func(t *testing.T) {
			read := make(chan struct{})
			address := wiretest.Listen(t, "tcp4", func(conn net.Conn) {
				_, _, _ = request(conn)
				send(conn, c.answer)
				if c.answer != "" {
					<-read // a reset discards data that the peer has not read yet
				}
				_ = conn.(*net.TCPConn).SetLinger(0)
			})
			l := newClient(t, Target{Options: Options{URL: address, Timeouts: limits}}).Lane()
			defer l.Close()
			var req measure.Request
			l.client.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				return &noticed{Conn: conn, read: read}, err
			}
			l.Do(t.Context(), message(t, l.client), &req, Hooks{})
			if req.Outcome != c.outcome || !strings.Contains(string(req.Error), "reset") {
				t.Errorf("want %s by a reset, got %s: %s", c.outcome, req.Outcome, req.Error)
			}
		})
	}
}

// Deadlines and the hard stop also end a read that waits in the kernel.
func TestOutcomeSilence(t *testing.T) {
	arrived := make(chan struct{}, 1)
	address := wiretest.Listen(t, "tcp4", func(conn net.Conn) {
		_, _, _ = request(conn)
		send(conn, streamHead+chunked(delta("a")))
		arrived <- struct{}{}
		_, _ = conn.Read(make([]byte, 1)) // until the client closes the connection
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, c := range []struct {
		timeouts Timeouts
		outcome  measure.Outcome
	}{
		{Timeouts{FirstToken: time.Minute, Stall: time.Millisecond}, measure.TimeoutStall},
		{Timeouts{FirstToken: time.Minute, Total: 100 * time.Millisecond}, measure.TimeoutTotal},
		{limits, measure.Aborted},
	} {
		l := newClient(t, Target{Options: Options{URL: address, Timeouts: c.timeouts}}).Lane()
		if c.outcome == measure.Aborted {
			go func() {
				<-arrived
				cancel()
			}()
		}
		var req measure.Request
		doContext(ctx, t, l, &req)
		if req.Outcome != c.outcome || l.Fresh(time.Now()) {
			t.Errorf("want %s and no connection, got %s: %s", c.outcome, req.Outcome, req.Error)
		}
		if c.outcome != measure.Aborted {
			<-arrived
		}
	}
}

// An answer that the server sends before it has read the message is reported, not the write error (EPIPE).
func TestOutcomeEarlyRefusal(t *testing.T) {
	done := make(chan struct{})
	address := wiretest.Listen(t, "tcp4", func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 1024))
		send(conn, "HTTP/1.1 413 Too Large\r\nContent-Length: 5\r\nConnection: close\r\n\r\nlarge")
		_ = conn.(*net.TCPConn).CloseWrite()
		<-done
	})
	defer close(done)
	c := newClient(t, Target{Options: Options{URL: address, Timeouts: patient}})
	l := c.Lane()
	defer l.Close()
	large, err := c.AppendRequest(nil, Body{Prompt: make([]byte, 64<<10), Stream: true})
	if err != nil {
		t.Fatal(err)
	}
	var req measure.Request
	l.Do(t.Context(), large, &req, Hooks{})
	if req.Outcome != measure.HTTP4xx || req.Error != "HTTP 413: large" {
		t.Errorf("want http_4xx, got %s: %s", req.Outcome, req.Error)
	}
}

func TestOutcomeRefused(t *testing.T) {
	address := outside.Address(t)
	for _, url := range []string{"http://" + address, "https://" + address, "http://no..such.host"} {
		var req measure.Request
		do(t, newClient(t, Target{Options: Options{URL: url, Timeouts: patient}}).Lane(), &req)
		if req.Outcome != measure.ConnectFailed || req.Status != 0 || !req.Timeline.Write.IsZero() {
			t.Errorf("%s: want connect, got %s: %s", url, req.Outcome, req.Error)
		}
	}
}

func TestIPv6(t *testing.T) {
	address := wiretest.Listen(t, "tcp6", func(conn net.Conn) {
		r, _, err := request(conn)
		if err != nil || r.URL.Path != "/prefix/v1/chat/completions" || !strings.HasPrefix(r.Host, "[::1]:") {
			t.Errorf("%v, %+v", err, r)
		}
		send(conn, streamHead+chunked(delta("a")+done)+bodyEnd)
	})
	l := newClient(t, Target{Options: Options{URL: "http://" + address + "/prefix/v1/"}}).Lane()
	defer l.Close()
	var req measure.Request
	do(t, l, &req)
	if req.Outcome != measure.OK {
		t.Errorf("got %s: %s", req.Outcome, req.Error)
	}
}

// Over TLS the server is verified against the configured CA, chunks have kernel timestamps as over plain TCP, and
// the connection is kept.
func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 || r.TLS.NegotiatedProtocol != "http/1.1" {
			t.Errorf("%s over %q, want HTTP/1.1", r.Proto, r.TLS.NegotiatedProtocol)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []string{delta("a"), delta("b"), done} {
			_, _ = w.Write([]byte(event))
			w.(http.Flusher).Flush()
		}
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the test provokes handshake errors
	server.StartTLS()
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	pem := certificatePEM(server)
	if err := os.WriteFile(ca, pem, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		tls     config.TLSConfig
		outcome measure.Outcome
	}{
		"verified":    {config.TLSConfig{CAFile: ca, ServerName: "example.com"}, measure.OK},
		"by address":  {config.TLSConfig{CA: string(pem)}, measure.OK},
		"insecure":    {config.TLSConfig{InsecureSkipVerify: true}, measure.OK},
		"unknown CA":  {config.TLSConfig{}, measure.ConnectFailed},
		"wrong name":  {config.TLSConfig{CAFile: ca, ServerName: "else.where"}, measure.ConnectFailed},
		"old version": {config.TLSConfig{CAFile: ca, MaxVersion: config.TLSVersions["TLS10"]}, measure.ConnectFailed},
	} {
		t.Run(name, func(t *testing.T) {
			l := newClient(t, Target{Options: Options{
				URL: server.URL, Timeouts: patient,
				HTTP: config.HTTPClientConfig{TLSConfig: c.tls},
			}}).Lane()
			defer l.Close()
			var req measure.Request
			// The first segments may have no timestamps; see TestKernelStamps.
			for i, start := 0, time.Now(); i < 2 || time.Since(start) < outside.Patience && l.left().Stamped() &&
				!req.Timeline.Kernel; i++ {
				do(t, l, &req)
				if req.Outcome != c.outcome {
					t.Fatalf("want %s, got %s: %s", c.outcome, req.Outcome, req.Error)
				}
				if c.outcome != measure.OK {
					break
				}
				if dialed := req.Timeline.Connect > 0; dialed != (i == 0) || len(req.Timeline.Chunks) != 2 {
					t.Errorf("request %d: dialed %v, %d chunks", i, dialed, len(req.Timeline.Chunks))
				}
			}
			if c.outcome == measure.OK && l.left().Stamped() && !req.Timeline.Kernel {
				t.Error("no kernel stamps under TLS")
			}
		})
	}
}

// A plain HTTP server behind an https URL.
func TestTLSNone(t *testing.T) {
	address := wiretest.Listen(t, "tcp4", func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 1024))
		send(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
	})
	var req measure.Request
	do(t, newClient(t, Target{Options: Options{URL: "https://" + address, Timeouts: limits}}).Lane(), &req)
	if req.Outcome != measure.ConnectFailed || !strings.Contains(string(req.Error), "TLS with") {
		t.Errorf("got %s: %s", req.Outcome, req.Error)
	}
}

// The timeout for connecting covers the TLS handshake.
func TestTLSSilence(t *testing.T) {
	for _, c := range []struct {
		connect, cancel time.Duration
		outcome         measure.Outcome
	}{
		{5 * time.Second, time.Hour, measure.TimeoutConnect},
		{time.Hour, 5 * time.Second, measure.Aborted},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := newClient(t, Target{Options: Options{URL: "https://test", Timeouts: Timeouts{Connect: c.connect}}})
			over(t, client, func(_ int, conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
			ctx, cancel := context.WithTimeout(t.Context(), c.cancel)
			defer cancel()
			var req measure.Request
			start := time.Now()
			doContext(ctx, t, client.Lane(), &req)
			if req.Outcome != c.outcome || time.Since(start) != 5*time.Second {
				t.Errorf("want %s after 5s, got %s after %v: %s", c.outcome, req.Outcome, time.Since(start), req.Error)
			}
		})
	}
}

// noticed closes read when its first bytes have been read.
type noticed struct {
	net.Conn
	read chan struct{}
	once sync.Once
}

func (n *noticed) Read(p []byte) (int, error) {
	k, err := n.Conn.Read(p)
	if k > 0 {
		n.once.Do(func() { close(n.read) })
	}
	return k, err
}
