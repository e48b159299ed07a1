//go:build faults

package faults_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"
)

// An exchange is a request and its answer in progress.
type exchange struct {
	passage
	proxy   *proxy
	client  *net.TCPConn
	in      *bufio.Reader // from the client
	request *http.Request
	body    []byte
	random  *rand.Rand // the same for each try of a request
	stop    int        // give the client at most so many bytes; -1: all
	bytes   int        // of the answer, given to the client

	together bool   // bytes for the client are held until the end
	held     []byte // the bytes held
	given    []byte // of the body, without its framing
}

// ask sends the request to the engine and returns the response. The caller closes its body.
func (x *exchange) ask() (*http.Response, error) {
	engine, err := new(net.Dialer).DialContext(x.proxy.ctx, "tcp", x.proxy.engine)
	if err != nil {
		return nil, err
	}
	if !x.proxy.hold(engine) {
		x.proxy.release(engine)
		return nil, net.ErrClosed
	}
	out := x.request.Clone(x.proxy.ctx)
	out.Body, out.ContentLength, out.Close = io.NopCloser(bytes.NewReader(x.body)), int64(len(x.body)), true
	resp, err := (*http.Response)(nil), out.Write(engine)
	if err == nil {
		resp, err = http.ReadResponse(bufio.NewReader(engine), out)
	}
	if err != nil {
		x.proxy.release(engine)
		return nil, fmt.Errorf("the engine: %w", err)
	}
	resp.Body = &engineBody{resp.Body, func() { x.proxy.release(engine) }}
	return resp, nil
}

// An engineBody also closes the connection to the engine.
type engineBody struct {
	io.Reader
	release func()
}

// Close implements io.Closer.
func (b *engineBody) Close() error {
	b.release()
	return nil
}

// wait waits for a time. It returns false if the client or the test ends before.
func (x *exchange) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-x.proxy.ctx.Done():
		return false
	}
}

// silent waits until the client has gone.
func (x *exchange) silent() { _, _ = x.in.Peek(1) }

// cutOff makes the close of the connection a reset, after which the client's kernel discards unread data. The client
// has a moment to read before.
func (x *exchange) cutOff() {
	x.wait(100 * time.Millisecond)
	_ = x.client.SetLinger(0)
}

// read takes the text from the body that the client was given, by the rules of the API.
func (x *exchange) read() {
	for line := range strings.Lines(string(x.given)) {
		data, ok := strings.CutPrefix(line, "data: ")
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if !ok || json.Unmarshal([]byte(data), &chunk) != nil {
			continue
		}
		for _, c := range chunk.Choices {
			x.text += c.Delta.Content
		}
	}
}

// carried returns the assistant's text in a request, or "" if there is none.
func carried(body []byte) (text string) {
	if !bytes.Contains(body, []byte(`"assistant"`)) {
		return ""
	}
	var turn struct {
		Messages []struct{ Role, Content string }
	}
	_ = json.Unmarshal(body, &turn) // on an error there is no text
	for _, m := range turn.Messages {
		if m.Role == "assistant" {
			text += m.Content
		}
	}
	return text
}
