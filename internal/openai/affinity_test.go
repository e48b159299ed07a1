package openai

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/config"

	"replayd/internal/measure"
)

// headsOf serves one answer a request on each connection: the head begins with lines(n) of the n-th request. It returns the
// requests' headers.
func headsOf(t *testing.T, c *Client, lines func(n int) string) *[]http.Header {
	var asked []http.Header
	over(t, c, func(_ int, conn net.Conn) {
		in := bufio.NewReader(conn)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			asked = append(asked, r.Header)
			body := "data: " + usualChunk + "\n\ndata: [DONE]\n\n"
			n := len(asked) - 1
			status, more, _ := strings.Cut(lines(n), "\r\n")
			send(conn, fmt.Sprintf("HTTP/1.1 %s\r\n%sContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", status, more, len(body), body))
		}
	})
	return &asked
}

// Whatever a header of an answer holds, what is sent back is one line of a request or nothing, and the name of a replica is text of a bounded length.
func TestHeadersOfAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		lines, echoed, replica string
		outcome                measure.Outcome
		echo                   measure.Echo
	}{
		"none":               {"200 OK\r\n", "", "", measure.OK, measure.EchoMissing},
		"usual":              {"200 OK\r\nx-session-token: YWJj==\r\nx-replica: 10.0.0.1:8000\r\n", "YWJj==", "10.0.0.1:8000", measure.OK, measure.EchoKept},
		"empty":              {"200 OK\r\nX-Session-Token:\r\nX-Replica: \r\n", "", "", measure.OK, measure.EchoMissing},
		"spaces around":      {"200 OK\r\nX-Session-Token: \t a b \r\n", "a b", "", measure.OK, measure.EchoKept},
		"as long as allowed": {"200 OK\r\nX-Session-Token: " + strings.Repeat("a", maxEcho) + "\r\n", strings.Repeat("a", maxEcho), "", measure.OK, measure.EchoKept},
		"too long":           {"200 OK\r\nX-Session-Token: " + strings.Repeat("a", maxEcho+1) + "\r\nX-Replica: " + strings.Repeat("b", 500) + "\r\n", "", strings.Repeat("b", maxReplicaName-len("…")) + "…", measure.OK, measure.EchoUnusable},
		"1 MiB":              {"200 OK\r\nX-Session-Token: " + strings.Repeat("a", 1<<20) + "\r\n", "", "", measure.BadStream, measure.EchoNone},
		"no ASCII":           {"200 OK\r\nX-Session-Token: é\r\nX-Replica: a\xffé\r\n", "", "a\uFFFDé", measure.OK, measure.EchoUnusable},
		"a control":          {"200 OK\r\nX-Session-Token: a\x01b\r\n", "", "", measure.BadStream, measure.EchoNone},
		"a bare CR":          {"200 OK\r\nX-Session-Token: a\rX-Evil: b\r\n", "", "", measure.BadStream, measure.EchoNone},
		"twice":              {"200 OK\r\nX-Session-Token: a\r\nX-Session-Token: b\r\n", "a", "", measure.OK, measure.EchoKept},
		"an interim answer":  {"103 Early Hints\r\nX-Session-Token: a\r\nX-Replica: a\r\n\r\nHTTP/1.1 200 OK\r\nX-Session-Token: b\r\nX-Replica: b\r\n", "b", "b", measure.OK, measure.EchoKept},
		"a refusal":          {"503 no\r\nX-Session-Token: a\r\nX-Replica: a\r\n", "", "a", measure.HTTP5xx, measure.EchoNone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := newClient(t, Target{Options: Options{Timeouts: limits, Replica: "x-replica"}})
				headsOf(t, client, func(int) string { return c.lines })
				l := client.Lane()
				defer l.Close()
				var req measure.Request
				l.Do(t.Context(), message(t, client), &req, Hooks{Echo: NewEcho("x-session-token")})
				if l.Echo() != c.echo {
					t.Errorf("want a header that is %s, got %s", c.echo, l.Echo())
				}
				if got := string(l.Echoed()); got != c.echoed || string(req.Replica) != c.replica || req.Outcome != c.outcome {
					t.Errorf("want %s, %.80q back and replica %.80q, got %s, %.80q and %.80q (%s)", c.outcome, c.echoed, c.replica, req.Outcome, got, req.Replica, req.Error)
				}
			})
		})
	}
}

// A token stands once in the next request, beside credentials from a file. The request after it has one only if it was given again.
func TestSentBack(t *testing.T) {
	for name, key := range map[string]string{"without credentials": "", "with a key from a file": keyFiles{t.TempDir()}.put(t, "key", "k")} {
		for header, back := range map[string]string{"x-session-token": "X-Session-Token", "set-cookie": "Cookie"} {
			t.Run(name+" "+header, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newClient(t, Target{Options: Options{Timeouts: limits, HTTP: config.HTTPClientConfig{BearerTokenFile: key}}})
					asked := headsOf(t, c, func(n int) string {
						return fmt.Sprintf("200 OK\r\nX-Session-Token: a%[1]d\r\nSet-Cookie: one=a%[1]d; Path=/; HttpOnly\r\nSet-Cookie: two=b\r\n", n)
					})
					e, m := NewEcho(header), message(t, c)
					l := c.Lane()
					defer l.Close()
					var req measure.Request
					for n := range 3 {
						if n < 2 {
							l.SendBack(e, e.Join(nil, l.Echoed(), time.Now()))
						} else {
							l.SendBack(e, nil)
						}
						if n > 0 {
							l.Begin(m, &req)
						}
						l.Do(t.Context(), m, &req, Hooks{Echo: e})
						if req.Outcome != measure.OK {
							t.Fatalf("request %d: %s: %s", n, req.Outcome, req.Error)
						}
					}
					values := map[string]string{"X-Session-Token": "a0", "Cookie": "two=b; one=a0"}
					for n, want := range []string{"", values[back], ""} {
						if got := strings.Join((*asked)[n].Values(back), "|"); got != want {
							t.Errorf("request %d: want %s %q, got %q", n, back, want, got)
						}
						if got := (*asked)[n].Get("Authorization"); (got != "") != (key != "") {
							t.Errorf("request %d: Authorization is %q", n, got)
						}
					}
				})
			})
		}
	}
}

// A header that comes with each answer and goes back with each request costs no allocation once its value is known.
func TestAffinityAllocatesNothing(t *testing.T) {
	plain := objectsOf(t, Target{}, "", nil)
	head := "X-Session-Token: YWJjZGVm\r\nX-Replica: engine-0\r\n"
	if got := objectsOf(t, Target{Options: Options{Replica: "X-Replica"}}, head, NewEcho("X-Session-Token")); got != plain {
		t.Errorf("want %v objects a request as without these headers, got %v", plain, got)
	}
}

// objectsOf returns the number of allocations of a request whose answer has more header lines.
func objectsOf(t *testing.T, target Target, lines string, e *Echo) float64 {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	defer func() { _ = l.Close(); <-done }()
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		body := "data: " + usualChunk + "\n\ndata: [DONE]\n\n"
		answer := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\n%sContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", lines, len(body), body)
		buffer := make([]byte, 4096)
		for {
			if _, err := conn.Read(buffer); err != nil {
				return
			}
			_, _ = conn.Write(answer)
		}
	}()
	target.URL, target.Timeouts = l.Addr().String(), limits
	c := newClient(t, target)
	defer c.Close()
	m := message(t, c)
	lane := c.Lane()
	defer lane.Close()
	var req measure.Request
	return testing.AllocsPerRun(50, func() {
		if e != nil {
			lane.SendBack(e, lane.Echoed())
		}
		lane.Begin(m, &req)
		lane.Do(t.Context(), m, &req, Hooks{Echo: e})
		if req.Outcome != measure.OK || e != nil && (req.Replica != "engine-0" || string(lane.Echoed()) != "YWJjZGVm") {
			t.Fatalf("%s: %s, replica %q, back %q", req.Outcome, req.Error, req.Replica, lane.Echoed())
		}
	})
}

// Names of replicas are kept for reuse up to a bound, and right beyond it.
func TestManyReplicas(t *testing.T) {
	c := newClient(t, Target{Options: Options{URL: "http://h", Replica: "X-Replica"}})
	l := c.Lane()
	for i := range 2 * keptReplicas {
		want := fmt.Sprint("engine-", i)
		l.head.Set("X-Replica", want)
		if got := c.replica(&l.head); string(got) != want {
			t.Errorf("want %s, got %s", want, got)
		}
	}
	if n := len(c.replicas.Load().names); n != keptReplicas {
		t.Errorf("want %d names kept, got %d", keptReplicas, n)
	}
}

func TestCheckEcho(t *testing.T) {
	for name, want := range map[string]string{
		"x-session-token": "",
		"Set-Cookie":      "",
		"":                `want a header name, got ""`,
		"a b":             `want a header name, got "a b"`,
		"cookie":          "want no credentials here: they are the target's http",
		"x-request-id":    "X-Request-Id is set by replayd",
		"content-length":  "Content-Length is set by replayd",
	} {
		got := ""
		if err := CheckEcho(name); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: want %q, got %q", name, want, got)
		}
	}
}

// The name of a replica has no credentials, and one that was kept is made anew when other credentials are to be hidden.
func TestReplicaHasNoCredentials(t *testing.T) {
	c := withKey(t, Target{Options: Options{Replica: "X-Replica"}})
	l := c.Lane()
	defer l.Close()
	for _, want := range []string{"engine-1 <secret>", "engine-1 <secret>", "next-key"} {
		l.head.Set("X-Replica", strings.Replace(want, "<secret>", canary, 1))
		if got := string(c.replica(&l.head)); got != want {
			t.Errorf("want %s, got %s", want, got)
		}
	}
	c.hide([]string{"next-key"})
	if got := c.replica(&l.head); got != "<secret>" {
		t.Errorf("want what is hidden now, got %s", got)
	}
}
