package openai

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
)

// A session's cookies after an answer, and what it then sends, as RFC 6265 has it.
func TestCookies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins at 2000-01-01
		plain := newClient(t, Target{Options: Options{URL: "http://host:8000/team/v1"}})
		secure := newClient(t, Target{Options: Options{URL: "https://host:8000/team/v1"}})
		for _, c := range []struct{ before, line, http, https string }{
			{"", "a=1", "a=1", "a=1"},
			{"", "a=1; Path=/; HttpOnly", "a=1", "a=1"},
			{"a=1", "b=2", "a=1; b=2", "a=1; b=2"},
			{"a=1\nb=2", "a=3", "b=2; a=3", "b=2; a=3"},
			{"a=1\nb=2", "a=; Max-Age=0", "b=2", "b=2"},
			{"a=1", "a=1; max-age=-1", "", ""},
			{"a=1", "a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "", ""},
			{"a=1", "a=; expires=Thu, 01-Jan-1970 00:00:00 GMT", "", ""},
			{"a=1", "a=2; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "a=2", "a=2"}, // Max-Age counts
			{"a=1", "a=2; Expires=Thu, 26 Nov 2099 12:00:00 GMT; Max-Age=0", "", ""},
			{"a=1", "A=2; Max-Age=0", "a=1", "a=1"}, // names have a case
			{"a=1", "no cookie", "a=1", "a=1"},
			{"a=1", "a=2; Path=/team", "a=1; a=2", "a=1; a=2"}, // another one; the longer path comes first
			{"a=1; Path=/team", "a=; Path=/; Max-Age=0", "a=1", "a=1"},
			{"", "a=1; Path=/other", "", ""},
			{"", "a=1; Domain=elsewhere", "", ""},
			{"", "a=1; Secure", "", "a=1"},
			{"", "a=\"x y\"", "a=\"x y\"", "a=\"x y\""},
		} {
			e := NewEcho("Set-Cookie")
			var kept []byte
			for _, line := range append(strings.Split(c.before, "\n"), c.line) {
				kept = e.Join(kept, appendCookie(nil, []byte(line), time.Now()), time.Now())
			}
			if http, https := plain.cookies(kept), secure.cookies(kept); http != c.http || https != c.https {
				t.Errorf("%q, %q: sent %q and %q, want %q and %q", c.before, c.line, http, https, c.http, c.https)
			}
		}
		if !plain.Withheld() || secure.Withheld() {
			t.Error("want it told that a Secure cookie is not sent over http")
		}
		e := NewEcho("Set-Cookie")
		kept := e.Join(nil, appendCookie(nil, []byte("a=1; Max-Age=60"), time.Now()), time.Now())
		<-time.After(59 * time.Second)
		if got := plain.cookies(kept); got != "a=1" {
			t.Errorf("want a cookie until it expires, got %q", got)
		}
		<-time.After(time.Second)
		if got := plain.cookies(kept); got != "" {
			t.Errorf("want none that has expired, got %q", got)
		}
	})
}

// The latest 50 cookies are kept, in at most 16 KiB.
func TestManyCookies(t *testing.T) {
	e, now := NewEcho("Set-Cookie"), time.Now()
	var kept []byte
	for n := range 100 {
		kept = e.Join(kept, appendCookie(nil, fmt.Appendf(nil, "c%d=%d", n, n), now), now)
	}
	if n := bytes.Count(kept, []byte("\n")); n != maxCookies || !bytes.HasPrefix(kept, []byte("c50=")) || !bytes.HasSuffix(kept, []byte("c99=99\n")) {
		t.Errorf("%d cookies kept: %.80q", n, kept)
	}
	var answer []byte
	for n := range 10 {
		answer = appendCookie(answer, fmt.Appendf(nil, "d%d=%s", n, strings.Repeat("x", 4000)), now)
	}
	if kept = e.Join(kept, answer, now); len(kept) > maxCookieBytes || len(kept) < maxCookieBytes-4100 || !bytes.Contains(kept, []byte("d9=x")) {
		t.Errorf("%d bytes kept", len(kept))
	}
	if got := appendCookie(nil, []byte("e="+strings.Repeat("x", 5000)), now); got != nil {
		t.Errorf("a cookie of 5,000 bytes is kept: %.80q", got)
	}
}

// A cookie that an answer deletes is not sent again, and the others are. Those of requests beside each other are joined.
func TestDeletedCookies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Target{Options: Options{URL: "http://host", Timeouts: limits}})
		lines := []string{
			"Set-Cookie: route=a; Path=/\r\nSet-Cookie: user=b\r\n",
			"Set-Cookie: route=; Path=/; Max-Age=0\r\n",
			"",
			"Set-Cookie: user=; Expires=Thu, 01 Jan 1970 00:00:00 GMT\r\nSet-Cookie: route=; Max-Age=0\r\n",
			"Set-Cookie: route=; Max-Age=0\r\nSet-Cookie: route=c\r\n",
			"Set-Cookie: \r\n",
		}
		asked := headsOf(t, c, func(n int) string { return "200 OK\r\n" + lines[n] })
		e, m := NewEcho("Set-Cookie"), message(t, c)
		l := c.Lane()
		defer l.Close()
		var req measure.Request
		var kept []byte
		for n, want := range []struct {
			sent, kept string
			echo       measure.Echo
		}{
			{"", "route=a; Path=/\nuser=b\n", measure.EchoKept},
			{"user=b; route=a", "user=b\n", measure.EchoKept},
			{"user=b", "user=b\n", measure.EchoMissing}, // they stay
			{"user=b", "", measure.EchoKept},            // they are gone
			{"", "route=c\n", measure.EchoKept},
			{"route=c", "route=c\n", measure.EchoUnusable},
		} {
			l.SendBack(e, kept)
			l.Do(t.Context(), m, &req, Hooks{Echo: e})
			if req.Outcome != measure.OK {
				t.Fatalf("request %d: %s: %s", n, req.Outcome, req.Error)
			}
			if l.Echo() == measure.EchoKept {
				kept = e.Join(kept, l.Echoed(), time.Now())
			}
			if got := (*asked)[n].Get("Cookie"); got != want.sent || string(kept) != want.kept || l.Echo() != want.echo {
				t.Errorf("request %d: sent %q, then %q, %s; want %+v", n, got, kept, l.Echo(), want)
			}
		}
	})
}
