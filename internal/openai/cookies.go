package openai

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// appendCookies appends cookies as a Cookie line has them: those that were sent, and then what the Set-Cookie lines of the answer say. A cookie of a
// name replaces the one before. One that has expired deletes it (RFC 6265, 5.3). Domain, path and a lifetime that has not ended are not looked at: all
// requests of a session go to one address.
func appendCookies(dst, sent, line []byte, now time.Time) []byte {
	pair, attributes, _ := bytes.Cut(line, []byte(";"))
	pair = bytes.Trim(pair, " \t")
	for len(sent) > 0 {
		var one []byte
		one, sent, _ = bytes.Cut(sent, []byte(";"))
		if one = bytes.Trim(one, " \t"); len(one) > 0 && !bytes.Equal(cookieName(one), cookieName(pair)) {
			dst = joinCookie(dst, one)
		}
	}
	if len(pair) > 0 && !expired(string(attributes), now) {
		dst = joinCookie(dst, pair)
	}
	return dst
}

func joinCookie(dst, pair []byte) []byte {
	if len(dst) > 0 {
		dst = append(dst, "; "...)
	}
	return append(dst, pair...)
}

func cookieName(pair []byte) []byte {
	name, _, _ := bytes.Cut(pair, []byte("="))
	return bytes.TrimRight(name, " \t")
}

// expired reports whether the attributes of a cookie delete it. Max-Age counts before Expires, and of each the last one (RFC 6265, 5.3).
func expired(attributes string, now time.Time) bool {
	var byAge, byDate, aged bool
	for attribute := range strings.SplitSeq(attributes, ";") {
		name, value, _ := strings.Cut(attribute, "=")
		value = strings.TrimSpace(value)
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "max-age":
			if seconds, err := strconv.ParseFloat(value, 64); err == nil && isWhole(value) { // of any length
				aged, byAge = true, seconds <= 0
			}
		case "expires":
			if at, ok := cookieDate(value); ok {
				byDate = !at.After(now)
			}
		}
	}
	return aged && byAge || !aged && byDate
}

// isWhole reports whether a value is digits, perhaps after a minus.
func isWhole(value string) bool {
	value = strings.TrimPrefix(value, "-")
	return value != "" && strings.Trim(value, "0123456789") == ""
}

// cookieDate reads the forms of a date that servers write.
func cookieDate(value string) (time.Time, bool) {
	for _, layout := range []string{http.TimeFormat, time.RFC1123, "Mon, 02-Jan-2006 15:04:05 MST", time.RFC850, time.ANSIC} {
		if at, err := time.Parse(layout, value); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}
