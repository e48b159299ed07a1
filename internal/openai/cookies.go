package openai

import (
	"bytes"
	"cmp"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Bounds of a session's cookies. Browsers keep some 50 of a server (RFC 6265, 6.1). Beyond either the oldest go.
const (
	maxCookies     = 50
	maxCookieBytes = 16 << 10
)

// appendCookie appends the line of a cookie that an answer sets at now; none where that is no cookie.
func appendCookie(dst, setCookie []byte, now time.Time) []byte {
	c, err := http.ParseSetCookie(string(setCookie))
	if err != nil {
		return dst
	}
	switch { // it counts before Expires, and from now on
	case c.MaxAge < 0:
		c.MaxAge, c.Expires = 0, time.Unix(1, 0)
	case c.MaxAge > 0:
		c.MaxAge, c.Expires = 0, now.Add(time.Duration(min(c.MaxAge, 1e9))*time.Second)
	}
	if text := c.String(); text != "" && len(text) <= maxEcho {
		dst = append(append(dst, text...), '\n')
	}
	return dst
}

// Join returns the value that a session keeps after an answer. For Set-Cookie these are the cookies before it and the answer's: each
// replaces the one of its name, domain and path. For any other header it is the answer's value.
func (e *Echo) Join(before, answered []byte, now time.Time) []byte {
	if !e.cookie {
		return answered
	}
	all := parseCookies(before)
	for _, c := range parseCookies(answered) {
		all = append(slices.DeleteFunc(all, func(old *http.Cookie) bool {
			return old.Name == c.Name && old.Path == c.Path && strings.EqualFold(old.Domain, c.Domain)
		}), c)
	}
	all = slices.DeleteFunc(all, func(c *http.Cookie) bool { return !c.Expires.IsZero() && !c.Expires.After(now) })
	var lines []string
	size := 0
	for _, c := range slices.Backward(all[max(0, len(all)-maxCookies):]) {
		text := c.String() + "\n"
		if size += len(text); size > maxCookieBytes {
			break
		}
		lines = append(lines, text)
	}
	slices.Reverse(lines)
	return []byte(strings.Join(lines, ""))
}

func parseCookies(lines []byte) (all []*http.Cookie) {
	for line := range bytes.Lines(lines) {
		if c, err := http.ParseSetCookie(string(line)); err == nil {
			all = append(all, c)
		}
	}
	return all
}

// cookies returns the value of the Cookie line of a session's next request, by RFC 6265: the cookies for the server's name and path
// that have not expired, and over http none that is Secure.
func (c *Client) cookies(kept []byte) string {
	jar, _ := cookiejar.New(nil) // without options it cannot fail
	all := parseCookies(kept)
	path, _, _ := strings.Cut(c.base.generates(c.target.API), "?")
	at := &url.URL{Scheme: "http", Host: cmp.Or(c.target.Host, c.base.host), Path: path}
	if c.base.secure {
		at.Scheme = "https"
	}
	jar.SetCookies(at, all)
	var pairs []string
	for _, one := range jar.Cookies(at) {
		pairs = append(pairs, one.String())
	}
	if !c.base.secure && slices.ContainsFunc(all, func(one *http.Cookie) bool { return one.Secure }) {
		c.withheld.Store(true)
	}
	return strings.Join(pairs, "; ")
}

// Withheld reports whether a cookie was not sent because it is Secure, and the server is spoken to over http.
func (c *Client) Withheld() bool { return c.withheld.Load() }
