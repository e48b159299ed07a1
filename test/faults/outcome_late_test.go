//go:build faults

package faults_test

import (
	"fmt"
	"strings"

	"replayd/internal/measure"
)

// lateCauses have the outcomes of an answer that has begun, and replayd's own outcomes.
var lateCauses = []cause{
	{name: "ends-in-its-head", answer: says("HTTP/1.1 200 OK\r\nContent-Ty"), outcome: measure.Truncated, words: "within its head"},
	{name: "resets-in-its-head", answer: saysAndResets("HTTP/1.1 200 OK\r\nContent-Ty"), outcome: measure.Truncated},
	{name: "ends-after-a-byte", answer: says("H"), outcome: measure.Truncated},
	{name: "ends-after-an-interim", answer: says("HTTP/1.1 100 Continue\r\n\r\n"), outcome: measure.Truncated},
	{name: "ends-after-its-head", answer: cuts(""), outcome: measure.Truncated},
	{name: "ends-in-the-stream", answer: cuts(firstEvent), outcome: measure.Truncated},
	{name: "resets-in-the-stream", answer: resets(firstEvent), outcome: measure.Truncated, words: "reset"},
	{name: "ends-in-a-letter", answer: cuts(firstEvent + nextEvent[:30] + "\xc3"), outcome: measure.Truncated},
	{name: "ends-in-a-size", answer: says(streamHead + "1"), outcome: measure.Truncated},
	{name: "no-done", answer: streams(firstEvent), outcome: measure.Truncated, words: "without [DONE]"},
	{name: "no-done-half-line", answer: streams(firstEvent + `data: {"choi`), outcome: measure.Truncated},
	{name: "no-body", answer: says("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 0\r\n\r\n"), outcome: measure.Truncated},
	{name: "short-of-its-length", answer: says("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\n" + firstEvent), outcome: measure.Truncated},
	{name: "json-cut", answer: says("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n" + whole), outcome: measure.Truncated, target: unstreamed},
	{name: "json-cut-by-close", answer: says("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + whole[:60]), outcome: measure.Truncated, target: unstreamed},
	{name: "tls-cut-in-the-stream", answer: cuts(firstEvent), secure: "good", outcome: measure.Truncated},
	{name: "tls-reset-in-the-stream", answer: resets(firstEvent), secure: "good", outcome: measure.Truncated},

	{name: "not-http", answer: says("SSH-2.0-OpenSSH_9.2\r\n"), outcome: measure.BadStream, words: "SSH-2.0"},
	{name: "not-http-tls-alert", answer: says("\x15\x03\x01\x00\x02\x02\x16"), outcome: measure.BadStream},
	{name: "broken-status", answer: says("HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n"), outcome: measure.BadStream},
	{name: "broken-header", answer: says("HTTP/1.1 200 OK\r\nno colon here\r\n\r\n"), outcome: measure.BadStream},
	{name: "status-600", answer: says(plain("600 What", "text/plain", "")), outcome: measure.BadStream, words: "600"},
	{name: "status-101", answer: says("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"), outcome: measure.BadStream},
	{name: "interim-for-ever", answer: says(strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 5000)), outcome: measure.BadStream},
	{name: "head-of-20-KB", answer: says(with("X-Long: "+strings.Repeat("x", 20<<10), closedHead) + goodEvents), outcome: measure.BadStream, words: "16 KiB"},
	{name: "no-content", answer: says("HTTP/1.1 204 No Content\r\n\r\n"), outcome: measure.BadStream},
	{name: "html", answer: says(plain("200 OK", "text/html", "<html>")), outcome: measure.BadStream, words: "text/html"},
	{name: "html-cut", answer: says("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100\r\n\r\n<html>"), outcome: measure.BadStream},
	{name: "json-for-a-stream", answer: says(plain("200 OK", "application/json", whole)), outcome: measure.BadStream},
	{name: "stream-for-json", answer: streams(goodEvents), target: unstreamed, outcome: measure.BadStream},
	{name: "json-of-nothing", answer: says(plain("200 OK", "application/json", "[]")), target: unstreamed, outcome: measure.BadStream},
	{name: "gzip", answer: says(with("Content-Encoding: gzip", closedHead) + "\x1f\x8b\x08\x00\x00"), outcome: measure.BadStream, words: "gzip"},
	{name: "no-json", answer: streams(firstEvent + "data: hello\n\n" + doneEvent), outcome: measure.BadStream, words: "hello"},
	{name: "interleaved", answer: streams(firstEvent + nextEvent[:20] + firstEvent + nextEvent[20:] + doneEvent), outcome: measure.BadStream},
	{name: "broken-chunks", answer: func(c *call) { c.read(); c.send(streamHead + c.chunked(firstEvent) + "zz\r\n") }, outcome: measure.BadStream, words: "chunked"},
	{name: "chunk-too-long", answer: says(streamHead + "3\r\n: xyz\r\n"), outcome: measure.BadStream, words: "chunked"},
	{name: "line-over-8-MiB", answer: says(closedHead + "data: " + strings.Repeat("x", 9<<20)), outcome: measure.BadStream, words: "8 MiB"},

	{name: "error", answer: streams(errorEvent), outcome: measure.ErrorEvent, words: "out of memory"},
	{name: "error-after-content", answer: streams(firstEvent + errorEvent + doneEvent), outcome: measure.ErrorEvent},
	{name: "error-then-cut", answer: cuts(firstEvent + errorEvent), outcome: measure.ErrorEvent},
	{name: "error-then-reset", answer: resets(errorEvent), outcome: measure.ErrorEvent},
	{name: "error-then-silence", answer: hangs(firstEvent + errorEvent), outcome: measure.ErrorEvent},
	{name: "error-by-name", answer: streams("event: error\ndata: it broke\n\n"), outcome: measure.ErrorEvent, words: "it broke"},
	{name: "error-json", answer: says(plain("200 OK", "application/json", `{"error":{"message":"no room"}}`)), target: unstreamed, outcome: measure.ErrorEvent, words: "no room"},
	{
		name: "error-json-for-a-stream", answer: says(plain("200 OK", "application/json", `{"error":{"message":"no room"}}`)),
		outcome: measure.ErrorEvent, words: "no room",
	},
	{
		name: "error-flat", outcome: measure.ErrorEvent, words: "engine died",
		answer: streams(firstEvent + `data: {"object":"error","message":"engine died","code":500}` + "\n\n" + doneEvent),
	},
	{
		name: "error-by-code", answer: streams(`data: {"text":"no worker","error_code":50001}` + "\n\n" + doneEvent),
		outcome: measure.ErrorEvent, words: "no worker",
	},
	{
		name: "error-in-a-choice", outcome: measure.ErrorEvent, words: "lost",
		answer: streams(firstEvent + `data: {"choices":[{"error":{"message":"lost"},"finish_reason":"error"}]}` + "\n\n"),
	},
	{
		name: "error-by-field", answer: streams(firstEvent + `error: {"code":500,"message":"no slot"}` + "\n\n"),
		outcome: measure.ErrorEvent, words: "no slot",
	},

	{
		name: "abort", answer: streams(firstEvent + abortEvent + usageEvent + doneEvent), outcome: measure.ServerAbort,
		words: "finish_reason abort",
	},
	{name: "abort-before-content", answer: streams(roleEvent + abortEvent + doneEvent), outcome: measure.ServerAbort},
	{name: "abort-then-cut", answer: cuts(firstEvent + abortEvent), outcome: measure.ServerAbort},
	{
		name: "abort-json", answer: says(plain("200 OK", "application/json", strings.Replace(whole, `"stop"`, `"abort"`, 1))),
		target: unstreamed, outcome: measure.ServerAbort,
	},

	{
		name:    "ok-with-empty-errors",
		answer:  streams(strings.ReplaceAll(goodEvents, `{"choices"`, `{"error":{},"choices"`)),
		outcome: measure.OK,
	},
	{
		name: "ok-by-the-name-of-a-tool", outcome: measure.OK,
		answer: streams(`data: {"choices":[{"delta":{"tool_calls":[{"function":{"name":"now","arguments":""}}]}}]}` + "\n\n" +
			strings.ReplaceAll(stopEvent, "stop", "tool_calls") + usageEvent + doneEvent),
	},
	{name: "ok-then-stall", answer: hangs(firstEvent + stopEvent), target: stall, outcome: measure.OK},
	{name: "ok-then-silence", answer: hangs(firstEvent + stopEvent + usageEvent), outcome: measure.OK},
	{name: "ok-then-error", answer: streams(firstEvent + stopEvent + usageEvent + errorEvent), outcome: measure.OK},
	{name: "ok-then-cut", answer: cuts(firstEvent + stopEvent), outcome: measure.OK},

	{name: "empty", answer: streams(doneEvent), outcome: measure.Empty},
	{name: "empty-with-usage", answer: streams(roleEvent + stopEvent + usageEvent + doneEvent), outcome: measure.Empty},
	{name: "empty-then-cut", answer: cuts(roleEvent + stopEvent), outcome: measure.Empty},
	{name: "empty-json", answer: says(plain("200 OK", "application/json", strings.Replace(whole, "Grüße", "", 1))), target: unstreamed, outcome: measure.Empty},

	{name: "cancelled-in-the-stream", answer: repeats(firstEvent, nextEvent), workload: "cancel: {ratio: 1, after: 200ms}", always: true, outcome: measure.Cancelled},
	{name: "cancelled-before-the-stream", answer: saysAndHangs(""), workload: "cancel: {ratio: 1, after: 100ms}", always: true, outcome: measure.Cancelled},

	{name: "aborted-in-the-stream", answer: repeats(firstEvent, nextEvent), target: endless, outcome: measure.Aborted},
	{name: "aborted-before-the-stream", answer: saysAndHangs(""), target: endless, outcome: measure.Aborted},
	{name: "aborted-unread", answer: func(c *call) { <-c.ended }, target: endless, trace: "long", outcome: measure.Aborted},
	{name: "aborted-while-connecting", early: (*call).silent, secure: "good", target: endless, outcome: measure.Aborted},
}

// label returns the name of the workload and the target: no other label has such values.
func (c *cause) label() string { return "f-" + c.name }

// yaml returns the cause as a target and a workload of the configuration. Rows follow each other, a few at a time, so
// that a busy machine misses none.
func (c *cause) yaml(url, authority, trace string) (target, workload string) {
	lanes := 8
	switch {
	case c.outcome == measure.Aborted:
		lanes = causeRows
	case c.late():
		lanes = causeRows / 2
	}
	target = fmt.Sprintf("- {name: %s, url: %q, model: m, metrics: {interval: 0s}", c.label(), url)
	if c.secure != "" {
		target += fmt.Sprintf(", http: {tls_config: {ca_file: %q}}", authority)
	}
	if !strings.Contains(c.target, "timeouts:") {
		target += ", " + patient
	}
	if c.target != "" {
		target += ", " + c.target
	}
	workload = fmt.Sprintf("- {name: %s, target: %s, trace: {path: %q}, arrival: concurrency, lanes: %d, repeat: {mode: once}, prompt: {calibrate: false}",
		c.label(), c.label(), trace, lanes)
	if c.workload != "" {
		workload += ", " + c.workload
	}
	return target + "}\n", workload + "}\n"
}

// late reports whether the outcome is a timeout.
func (c *cause) late() bool { return strings.HasPrefix(string(c.outcome), "timeout_") }
