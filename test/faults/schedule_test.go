//go:build faults

package faults_test

import (
	"bytes"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"time"
	"unicode/utf8"

	"replayd/internal/measure"
)

// The timeouts of the targets behind the proxy. Gentle faults take far less, also on a busy machine.
const (
	firstTokenLimit = 6 * time.Second
	stallLimit      = 5 * time.Second
	totalLimit      = 20 * time.Second
)

// gentle faults may lose nothing. Faults that need a stream, or an unstreamed answer, say so.
var gentle = []fault{
	{name: "none"},
	{name: "delay", pause: upTo(20 * time.Millisecond)},
	{name: "slow start", slow: 1500 * time.Millisecond},
	{name: "pieces of 1 to 7 bytes", pieces: small}, // UTF-8 and data: are cut, too
	{name: "a byte a chunk", pieces: func(_ *exchange, b []byte) [][]byte { return cut(b, func() int { return 1 }) }},
	{name: "borders in data: and in UTF-8", edit: foreign, pieces: borders},
	{name: "all in one write", whole: true},
	{name: "CRLF", edit: crlf},
	{name: "CRLF in pieces", edit: crlf, pieces: small},
	{name: "comments and fields", edit: comments},
	{name: "interim heads", before: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n"},
	{name: "large head", headers: "X-Long: " + strings.Repeat("x", 10<<10) + "\r\n"},
	{name: "identity", headers: "Content-Encoding: identity\r\n"},
	{name: "by length", framing: byLength},
	{name: "by close", framing: byClose},
	{name: "by close, reset", framing: byClose, ending: wasReset},
	{name: "left without an end", last: true, ending: closed},
	{name: "reset behind the answer", framing: byLength, last: true, ending: wasReset},
	{name: "silent behind the answer", last: true, ending: silent},
}

// harmful faults spoil the answer and give their outcome.
var harmful = []fault{
	{name: "gzip nobody asked for", headers: "Content-Encoding: gzip\r\n", outcome: string(measure.BadStream)},
	{name: "another type", headers: "Content-Type: text/html\r\n", outcome: string(measure.BadStream)},
	{name: "head over 16 KiB", headers: "X-Long: " + strings.Repeat("x", 20<<10) + "\r\n", outcome: string(measure.BadStream)},
	{name: "interim heads for ever", before: strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 20), outcome: string(measure.BadStream)},
	{name: "no HTTP", says: "SSH-2.0-OpenSSH_9.2\r\n", outcome: string(measure.BadStream)},
	{name: "garbled bytes", edit: garbled, outcome: string(measure.BadStream)},
	{name: "interleaved chunks", edit: interleaved, outcome: string(measure.BadStream)},
	{name: "broken chunk size", edit: misframed, outcome: string(measure.BadStream)},
	{name: "an error in the stream", edit: failing, outcome: string(measure.ErrorEvent)},
	{name: "redirect", says: refusal("307 Temporary Redirect", "Location: http://127.0.0.1:1/\r\n"), outcome: string(measure.HTTP3xx)},
	{name: "400", says: refusal("400 Bad Request", ""), outcome: string(measure.HTTP4xx)},
	{name: "429", says: refusal("429 Too Many Requests", "Retry-After: 1\r\n"), outcome: string(measure.HTTP429)},
	{name: "503", says: refusal("503 Service Unavailable", ""), outcome: string(measure.HTTP5xx)},
	{name: "an empty answer", streams: true, says: "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: [DONE]\n\n", outcome: string(measure.Empty)},
	{name: "slower than allowed", streams: true, slowly: true, pause: always(time.Second), outcome: string(measure.TimeoutTotal)},
	{name: "first token too late", streams: true, slowly: true, slow: firstTokenLimit + 2*time.Second, outcome: string(measure.TimeoutFirstToken)},
}

// broken faults end an answer anywhere; the outcome depends on the bytes given by then.
var broken = []fault{
	{name: "lost", stop: anywhere},
	{name: "lost at once", stop: at(0)},
	{name: "lost in pieces", pieces: small, stop: anywhere},
	{name: "lost, by length", framing: byLength, stop: anywhere},
	{name: "lost, by close", framing: byClose, stop: anywhere},
	{name: "reset", stop: anywhere, ending: wasReset},
	{name: "reset at once", stop: at(0), ending: wasReset},
	{name: "half open", stop: anywhere, ending: silent},
	{name: "half open from the start", stop: at(0), ending: silent},
}

// A schedule assigns a fault to each request, by a seed and the request's id.
type schedule struct {
	seed   uint64
	faults []fault
}

// choose gives an unstreamed answer, known by its workload's name, no fault that needs a stream.
func (s schedule) choose(id string) fault {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	random := rand.New(rand.NewPCG(s.seed, h.Sum64()))
	for {
		f := s.faults[random.IntN(len(s.faults))]
		if !f.streams || !strings.HasPrefix(id, "whole") {
			return f
		}
	}
}

// where is the largest number of bytes after which an answer of the soak may end: about the length of the longest.
const where = 6000

func anywhere(x *exchange) int { return x.random.IntN(where) }

func at(n int) func(*exchange) int { return func(*exchange) int { return n } }

func upTo(d time.Duration) func(*exchange) time.Duration {
	return func(x *exchange) time.Duration { return time.Duration(x.random.Int64N(int64(d))) }
}

func always(d time.Duration) func(*exchange) time.Duration {
	return func(*exchange) time.Duration { return d }
}

func refusal(status, header string) string {
	return "HTTP/1.1 " + status + "\r\n" + header + "Content-Type: application/json\r\nContent-Length: 32\r\n\r\n" +
		`{"error":{"message":"a fault"} }`
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
func foreign(_ *exchange, _ int, line []byte) ([]byte, bool) {
	return bytes.Replace(line, []byte(`"content":" `), []byte(`"content":" é世🙂`), 1), false
}

func crlf(_ *exchange, _ int, line []byte) ([]byte, bool) {
	return bytes.Replace(line, []byte("\n"), []byte("\r\n"), 1), false
}

// comments puts lines that are not data between events.
func comments(x *exchange, _ int, line []byte) ([]byte, bool) {
	if !x.stream || len(line) > 1 {
		return line, false
	}
	return append(line, ": ping\n\nid: 7\nretry: 10\n\nevent: note\ndata: not for you\n\n"...), false
}

// spoil returns an edit that spoils the first possible line after a few; how gets the line.
func spoil(how func(x *exchange, line []byte) []byte) func(*exchange, int, []byte) ([]byte, bool) {
	return func(x *exchange, n int, line []byte) ([]byte, bool) {
		if x.spoiling || x.stream && (n < 6 || !bytes.Contains(line, []byte(`"content":"`))) {
			return line, false
		}
		x.spoiling = true
		return how(x, line), true
	}
}

// garbled changes bytes to invalid text.
var garbled = spoil(func(x *exchange, line []byte) []byte {
	line = bytes.Clone(line)
	brace := bytes.IndexByte(line, '{')
	line[brace+1+x.random.IntN(4)] = byte(x.random.IntN(8)) // within the first key's name
	return line
})

// interleaved mixes two events, as a proxy with two writing threads does.
var interleaved = spoil(func(_ *exchange, line []byte) []byte {
	half := len(line) / 2
	return bytes.Join([][]byte{line[:half], line, line[half:]}, nil)
})

// misframed gives a chunk a size that is not a number.
var misframed = spoil(func(x *exchange, line []byte) []byte {
	x.misframed = true
	return line
})

// failing is an error of the engine in the middle of a stream, or instead of an unstreamed answer.
var failing = spoil(func(x *exchange, line []byte) []byte {
	event := []byte(`{"error":{"message":"a fault","type":"InternalServerError","code":500}}`)
	if !x.stream {
		return event
	}
	return bytes.Join([][]byte{line, []byte("\ndata: "), event, []byte("\n")}, nil)
})
