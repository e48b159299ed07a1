//go:build faults

package faults_test

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"
)

// gentle faults may lose nothing.
var gentle = []fault{
	{name: "delay", pause: upTo(20 * time.Millisecond)},
	{name: "slow start", slow: 1500 * time.Millisecond},
	{name: "pieces of 1 to 7 bytes", pieces: small}, // UTF-8 and data: are cut, too
	{name: "a byte a chunk", pieces: func(_ *exchange, b []byte) [][]byte { return cut(b, func() int { return 1 }) }},
	{name: "borders in data: and in UTF-8", edit: foreign, pieces: borders},
	{name: "all in one write", whole: true},
	{name: "CRLF", edit: crlf},
	{name: "CRLF in pieces", edit: crlf, pieces: small},
	{name: "comments and fields", edit: comments},
	{
		name:   "interim heads",
		before: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n",
	},
	{name: "large head", headers: "X-Long: " + strings.Repeat("x", 10<<10) + "\r\n"},
	{name: "identity", headers: "Content-Encoding: identity\r\n"},
	{name: "by length", framing: byLength},
	{name: "by close", framing: byClose},
	{name: "by close, reset", framing: byClose, ending: wasReset},
	{name: "left without an end", last: true, ending: closed},
	{name: "reset behind the answer", framing: byLength, last: true, ending: wasReset},
	{name: "silent behind the answer", last: true, ending: silent},
}

func at(n int) func(*exchange) int { return func(*exchange) int { return n } }

func upTo(d time.Duration) func(*exchange) time.Duration {
	return func(x *exchange) time.Duration { return time.Duration(x.random.Int64N(int64(d))) }
}

// cut cuts bytes into pieces of the given sizes.
func cut(b []byte, size func() int) (all [][]byte) {
	for len(b) > 0 {
		n := min(size(), len(b))
		all, b = append(all, b[:n]), b[n:]
	}
	return all
}

func small(x *exchange, b []byte) [][]byte { return cut(b, func() int { return 1 + x.random.IntN(7) }) }

// borders cuts where a careless reader would fail: within "data:", within each multi-byte rune, before the end of the
// line and within it.
func borders(_ *exchange, b []byte) (all [][]byte) {
	begin := 0
	for i := range b {
		if i == 3 || i > 0 && !utf8.RuneStart(b[i]) || i == len(b)-1 {
			all, begin = append(all, b[begin:i]), i
		}
	}
	return append(all, b[begin:])
}

// foreign puts runes of two, three and four bytes into the content.
func foreign(line []byte) []byte {
	return bytes.Replace(line, []byte(`"content":" `), []byte(`"content":" é世🙂`), 1)
}

func crlf(line []byte) []byte {
	return bytes.Replace(line, []byte("\n"), []byte("\r\n"), 1)
}

// comments puts lines that are not data between events.
func comments(line []byte) []byte {
	if len(line) > 1 {
		return line
	}
	return append(line, ": ping\n\nid: 7\nretry: 10\n\nevent: note\ndata: not for you\n\n"...)
}
