package openai

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
)

func TestCookies(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct{ sent, line, want string }{
		{"", "a=1", "a=1"},
		{"", "a=1; Path=/; HttpOnly", "a=1"},
		{"a=1", "b=2", "a=1; b=2"},
		{"a=1; b=2", "a=3", "b=2; a=3"},
		{"a=1; b=2", "a=; Max-Age=0", "b=2"},
		{"a=1; b=2", " a = gone ;MAX-AGE = 0", "b=2"},
		{"a=1", "a=1; max-age=-1", ""},
		{"a=1", "a=1; Max-Age=-99999999999999999999999", ""},
		{"a=1", "a=2; Max-Age=99999999999999999999999", "a=2"},
		{"a=1", "a=2; Max-Age=", "a=2"},
		{"a=1", "a=2; Max-Age=0x0", "a=2"},
		{"a=1", "a=2; Max-Age=nan", "a=2"},
		{"a=1", "a=2; Max-Age", "a=2"},
		{"a=1", "a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT", ""},
		{"a=1", "a=; expires=Thu, 01-Jan-1970 00:00:00 GMT; Path=/", ""},
		{"a=1", "a=; Expires=Thursday, 01-Jan-70 00:00:00 GMT", ""},
		{"a=1", "a=2; Expires=Thu, 26 Nov 2026 12:00:01 GMT", "a=2"},
		{"a=1", "a=2; Expires=Thu, 26 Nov 2026 12:00:00 GMT", ""},
		{"a=1", "a=2; Expires=soon", "a=2"},
		{"a=1", "a=2; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "a=2"}, // Max-Age counts
		{"a=1", "a=2; Expires=Thu, 26 Nov 2099 12:00:00 GMT; Max-Age=0", ""},
		{"a=1", "a=2; Max-Age=0; Max-Age=60", "a=2"}, // the last one counts
		{"a=1", "aa=2; Max-Age=0", "a=1"},
		{"a=1", "A=2; Max-Age=0", "a=1"}, // names have a case
		{"a=1", "", "a=1"},
		{"bare", "bare; Max-Age=0", ""},
		{"a=1=2", "a=3=4", "a=3=4"},
	} {
		if got := string(appendCookies(nil, []byte(c.sent), []byte(c.line), now)); got != c.want {
			t.Errorf("%q, %q: got %q, want %q", c.sent, c.line, got, c.want)
		}
	}
}

// A cookie that an answer deletes is not sent again, and the others are.
func TestDeletedCookies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Target{Options: Options{Timeouts: limits}})
		lines := []string{
			"Set-Cookie: route=a; Path=/\r\nSet-Cookie: user=b\r\n",
			"Set-Cookie: route=; Max-Age=0\r\n",
			"",
			"Set-Cookie: user=; Expires=Thu, 01 Jan 1970 00:00:00 GMT\r\nSet-Cookie: route=; Max-Age=0\r\n",
			"Set-Cookie: route=; Max-Age=0\r\nSet-Cookie: route=c\r\n",
			strings.Repeat("Set-Cookie: route=d\r\n", maxCookies+1),
		}
		asked := headsOf(t, c, func(n int) string { return "200 OK\r\n" + lines[n] })
		e, m := NewEcho("Set-Cookie"), message(t, c)
		l := c.Lane()
		defer l.Close()
		var req measure.Request
		var token []byte
		for n, want := range []struct {
			sent, token string
			echo        measure.Echo
		}{
			{"", "route=a; user=b", measure.EchoKept},
			{"route=a; user=b", "user=b", measure.EchoKept},
			{"user=b", "", measure.EchoMissing}, // the token stays
			{"user=b", "", measure.EchoKept},    // the token is gone
			{"", "route=c", measure.EchoKept},
			{"route=c", "", measure.EchoUnusable},
		} {
			l.SendBack(e, token)
			l.Do(t.Context(), m, &req, Hooks{Echo: e})
			if req.Outcome != measure.OK {
				t.Fatalf("request %d: %s: %s", n, req.Outcome, req.Error)
			}
			if got := (*asked)[n].Get("Cookie"); got != want.sent || string(l.Echoed()) != want.token || l.Echo() != want.echo {
				t.Errorf("request %d: sent %q, then %q, %s; want %+v", n, got, l.Echoed(), l.Echo(), want)
			}
			if l.Echo() == measure.EchoKept {
				token = append(token[:0], l.Echoed()...)
			}
		}
	})
}
