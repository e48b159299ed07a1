//go:build faults

package faults_test

import (
	"fmt"
	"strings"

	"replayd/internal/measure"
)

// A cause is a fault of a server and the only outcome that it may have.
type cause struct {
	name     string
	answer   script
	outcome  measure.Outcome
	or       measure.Outcome // another that it may have; "": none
	words    string          // in the error message
	target   string          // further keys of the target
	workload string          // further keys of the workload
	trace    string          // "" for short prompts
	early    func(c *call)   // see server; then all rows have the outcome
	always   bool            // all rows have it
	secure   string          // the certificate; "" for no TLS
}

// Timeouts that a cause can reach. The others are long, also for a busy machine.
const (
	patient    = "timeouts: {connect: 2m, first_token: 2m, stall: 2m}"
	firstToken = "timeouts: {connect: 2m, first_token: 1s, stall: 2m}"
	stall      = "timeouts: {connect: 2m, first_token: 2m, stall: 1s}"
	total      = "timeouts: {connect: 2m, first_token: 2m, stall: 2m, total: 1s}"
	dial       = "timeouts: {connect: 1s, first_token: 2m, stall: 2m}"
	endless    = "timeouts: {connect: 0s, first_token: 0s, stall: 0s, total: 0s}"
	unstreamed = "stream: false"
)

func plain(status, kind, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", status, kind, len(body), body)
}

func with(header, answer string) string {
	return strings.Replace(answer, "\r\n", "\r\n"+header+"\r\n", 1)
}

var whole = `{"choices":[{"index":0,"message":{"content":"Grüße"},"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":4}}`

// causes are sorted by outcome, in measure's order.
var causes = []cause{
	// Behavior that servers are free to choose is no fault.
	{name: "ok", answer: streams(goodEvents), outcome: measure.OK},
	{name: "ok-crlf", answer: streams(strings.ReplaceAll(goodEvents, "\n", "\r\n")), outcome: measure.OK},
	{name: "ok-comments", answer: streams(": ping\n\n" + roleEvent + "id: 1\nretry: 5\n" + firstEvent + "event: note\ndata: well\n\n" + doneEvent), outcome: measure.OK},
	{name: "ok-interim", answer: says("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + closedHead + goodEvents), outcome: measure.OK},
	{name: "ok-by-close", answer: says(closedHead + goodEvents), outcome: measure.OK},
	{name: "ok-http10", answer: says(strings.Replace(closedHead, "1.1", "1.0", 1) + goodEvents), outcome: measure.OK},
	{name: "ok-trailers", answer: says(streamHead + fmt.Sprintf("%x;ext=\"1\"\r\n%s\r\n0\r\nX: y\r\n\r\n", len(goodEvents), goodEvents)), outcome: measure.OK},
	{name: "ok-finish-then-cut", answer: cuts(firstEvent + stopEvent), outcome: measure.OK},
	{name: "ok-finish-then-reset", answer: resets(firstEvent + stopEvent), outcome: measure.OK},
	{name: "ok-done-then-silence", answer: hangs(goodEvents), outcome: measure.OK},
	{name: "ok-done-then-garbage", answer: streams(firstEvent + doneEvent + "data: {{{\n\n" + errorEvent), outcome: measure.OK},
	{name: "ok-done-then-broken-chunks", answer: func(c *call) { c.read(); c.send(streamHead + c.chunked(firstEvent+doneEvent) + "zz\r\n") }, outcome: measure.OK},
	{name: "ok-json", answer: says(plain("200 OK", "application/json", whole)), outcome: measure.OK, target: unstreamed},
	{name: "ok-tls", answer: streams(goodEvents), outcome: measure.OK, secure: "good"},
	{name: "ok-tls-no-goodbye", answer: resets(goodEvents), outcome: measure.OK, secure: "good"},

	{name: "307", answer: says("HTTP/1.1 307 Temporary Redirect\r\nLocation: /v2/chat\r\nContent-Length: 0\r\n\r\n"), outcome: measure.HTTP3xx, words: "redirects are not followed: /v2/chat"},
	{name: "304", answer: says("HTTP/1.1 304 Not Modified\r\n\r\n"), outcome: measure.HTTP3xx},
	{name: "301-cut", answer: says("HTTP/1.1 301 Moved\r\nLocation: /\r\nContent-Length: 100\r\n\r\n<html>"), outcome: measure.HTTP3xx},

	{name: "400", answer: says(plain("400 Bad Request", "application/json", `{"error":{"message":"too long"}}`)), outcome: measure.HTTP4xx, words: "too long"},
	{name: "404-stalled", answer: hangs404, outcome: measure.HTTP4xx, words: "HTTP 404"},
	{name: "413-unread", answer: refuses("HTTP/1.1 413 Too Large\r\nContent-Length: 5\r\nConnection: close\r\n\r\nlarge"), outcome: measure.HTTP4xx, words: "large", trace: "long"},
	{name: "422-json", answer: says(plain("422 Unprocessable", "application/json", `{"detail":"no"}`)), outcome: measure.HTTP4xx, target: unstreamed, words: "no"},

	{name: "429", answer: says(with("Retry-After: 1", plain("429 Too Many", "application/json", `{"error":"slow down"}`))), outcome: measure.HTTP429, words: "slow down"},
	{name: "429-cut", answer: says("HTTP/1.1 429 Too Many\r\nContent-Length: 10\r\n\r\nslow"), outcome: measure.HTTP429},
	{name: "429-tls", answer: says(plain("429 Too Many", "text/plain", "")), outcome: measure.HTTP429, secure: "good"},

	{name: "503", answer: says(plain("503 Unavailable", "text/html", "<html>")), outcome: measure.HTTP5xx, words: "HTTP 503"},
	{name: "502-chunked-cut", answer: says("HTTP/1.1 502 Bad Gateway\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"), outcome: measure.HTTP5xx},
	{name: "500-reset", answer: saysAndResets("HTTP/1.1 500 Oh\r\nContent-Length: 10\r\n\r\noh"), outcome: measure.HTTP5xx},

	{name: "closes-at-once", early: func(*call) {}, outcome: measure.NoAnswer},
	{name: "resets-at-once", early: (*call).reset, outcome: measure.NoAnswer, or: measure.ConnectFailed}, // as the reset or the end of the dial is first
	{name: "closes-unread", answer: func(*call) {}, outcome: measure.NoAnswer, words: "before any byte", trace: "long"},
	{name: "closes-without-answer", answer: says(""), outcome: measure.NoAnswer, words: "before any byte"},
	{name: "resets-without-answer", answer: saysAndResets(""), outcome: measure.NoAnswer, words: "reset"},
	{name: "closes-within-the-body", answer: halfRead, outcome: measure.NoAnswer, trace: "long"},
	{name: "tls-expired", secure: "expired", outcome: measure.ConnectFailed, words: "expired"},
	{name: "tls-untrusted", secure: "untrusted", outcome: measure.ConnectFailed, words: "unknown authority"},
	{name: "tls-wrong-name", secure: "other", outcome: measure.ConnectFailed, words: "127.0.0.1"},
	{name: "tls-not-spoken", early: func(c *call) { c.send("HTTP/1.0 400 Bad Request\r\n\r\n") }, secure: "good", outcome: measure.ConnectFailed, words: "TLS"},
	{name: "tls-cut", early: func(c *call) { _, _ = c.Read(make([]byte, 100)) }, secure: "good", outcome: measure.ConnectFailed, words: "TLS"},
	{name: "tls-wants-client", answer: streams(goodEvents), secure: "mutual", outcome: measure.ConnectFailed},
	{name: "refused", outcome: measure.ConnectFailed, words: "refused"},

	{name: "tls-silent", early: (*call).silent, secure: "good", target: dial, outcome: measure.TimeoutConnect},
	{name: "backlog-full", target: dial, outcome: measure.TimeoutConnect},

	{name: "says-nothing", answer: saysAndHangs(""), target: firstToken, outcome: measure.TimeoutFirstToken},
	{name: "reads-nothing", answer: func(c *call) { <-c.ended }, target: firstToken, trace: "long", outcome: measure.TimeoutFirstToken},
	{name: "stops-in-its-head", answer: saysAndHangs("HTTP/1.1 200 OK\r\nContent-Ty"), target: firstToken, outcome: measure.TimeoutFirstToken},
	{name: "stops-after-its-head", answer: hangs(roleEvent), target: firstToken, outcome: measure.TimeoutFirstToken},
	{name: "only-pings", answer: repeats(roleEvent, ": ping\n\n"), target: firstToken, outcome: measure.TimeoutFirstToken},
	{name: "only-interim", answer: saysAndHangs("HTTP/1.1 100 Continue\r\n\r\n"), target: firstToken, outcome: measure.TimeoutFirstToken},

	{name: "stalls", answer: hangs(firstEvent), target: stall, outcome: measure.TimeoutStall},
	{name: "stalls-in-a-line", answer: hangs(firstEvent + `data: {"cho`), target: stall, outcome: measure.TimeoutStall},
	{name: "stalls-with-pings", answer: repeats(firstEvent, ": ping\n\n"), target: stall, outcome: measure.TimeoutStall},
	{name: "stalls-tls", answer: hangs(firstEvent), target: stall, secure: "good", outcome: measure.TimeoutStall},

	{name: "never-ends", answer: repeats(firstEvent, nextEvent), target: total, outcome: measure.TimeoutTotal},
	{name: "total-without-head", answer: saysAndHangs(""), target: total, outcome: measure.TimeoutTotal},
	{name: "total-of-json", answer: saysAndHangs("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"), target: total + ", " + unstreamed, outcome: measure.TimeoutTotal},
	{name: "total-while-connecting", early: (*call).silent, secure: "good", target: total, outcome: measure.TimeoutTotal},
}
