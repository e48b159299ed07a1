//go:build faults

package faults_test

import (
	"io"
	"time"
)

// Parts of a stream.
const (
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	closedHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
	lastChunk  = "0\r\n\r\n"
	roleEvent  = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n"
	firstEvent = `data: {"choices":[{"index":0,"delta":{"content":"Grüße 🙂"}}]}` + "\n\n"
	nextEvent  = `data: {"choices":[{"index":0,"delta":{"content":" \" \\ ]}"}}]}` + "\n\n"
	stopEvent  = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	usageEvent = `data: {"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":4}}` + "\n\n"
	doneEvent  = "data: [DONE]\n\n"
	errorEvent = `data: {"error":{"message":"out of memory","code":500}}` + "\n\n"
	abortEvent = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"abort"}]}` + "\n\n"
	goodEvents = roleEvent + firstEvent + nextEvent + stopEvent + usageEvent + doneEvent
)

// says answers with exact bytes and closes.
func says(text string) script {
	return func(c *call) {
		c.read()
		c.send(text)
	}
}

// streams answers with a complete stream.
func streams(events string) script {
	return func(c *call) {
		c.read()
		c.send(streamHead + c.chunked(events) + lastChunk)
	}
}

// cuts answers with an incomplete stream and closes.
func cuts(events string) script {
	return func(c *call) {
		c.read()
		c.send(streamHead + c.chunked(events))
	}
}

// resets answers with a stream and resets the connection.
func resets(events string) script {
	return func(c *call) {
		c.read()
		c.send(streamHead + c.chunked(events))
		c.reset()
	}
}

// hangs answers with a stream and then goes silent.
func hangs(events string) script {
	return func(c *call) {
		c.read()
		c.send(streamHead + c.chunked(events))
		c.silent()
	}
}

// repeats answers with the beginning of a stream and then repeats more forever.
func repeats(events, more string) script {
	return func(c *call) {
		c.read()
		c.send(streamHead + c.chunked(events))
		for {
			if _, err := io.WriteString(c, c.chunked(more)); err != nil {
				return
			}
			<-time.After(50 * time.Millisecond)
		}
	}
}

// hangs404 never sends the body that it promises.
func hangs404(c *call) {
	c.read()
	c.send("HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\n\r\nno")
	c.silent()
}

// refuses answers and closes before it has read the body, so that the kernel sends a reset after the answer.
func refuses(text string) script { return func(c *call) { c.send(text) } }

// halfRead closes with a part of the body unread.
func halfRead(c *call) { _, _ = c.request.Body.Read(make([]byte, 1000)) }

func saysAndResets(text string) script {
	return func(c *call) {
		c.read()
		c.send(text)
		c.reset()
	}
}

func saysAndHangs(text string) script {
	return func(c *call) {
		c.read()
		c.send(text)
		c.silent()
	}
}
