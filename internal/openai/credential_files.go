package openai

import (
	"bytes"
	"context"
	"fmt"
	"net/textproto"
	"strings"
	"time"
)

// Messages are built long before they are written, so they are built without the credentials in files. A lane adds
// these when it writes the message, so that a changed or removed key takes effect. Only WatchCredentials reads the
// files, every credentialsAge: a slow disk must not delay a write or the pacer.
const credentialsAge = 900 * time.Millisecond

// late has the header lines from files, or why the files cannot be read. It never changes.
type late struct {
	lines []line
	err   error
}

type line struct {
	key  []byte // the end of the line before it and its own name: a message that has it has a request header of that name
	text []byte
}

// Ready returns why no message can be written now: a file with credentials could not be read. It reads no file itself.
func (c *Client) Ready() error {
	if l := c.late.Load(); l != nil {
		return l.err
	}
	return nil
}

// WatchCredentials reads the files with credentials repeatedly until ctx ends. Without such files it returns at once.
func (c *Client) WatchCredentials(ctx context.Context) {
	if c.late.Load() == nil {
		return
	}
	tick := time.Tick(credentialsAge)
	for {
		select {
		case <-tick:
			_ = c.readCredentials() // Ready returns the error
		case <-ctx.Done():
			return
		}
	}
}

// readCredentials reads the files, if there are any. Its error is that of Ready.
func (c *Client) readCredentials() error {
	if c.late.Load() == nil {
		return nil
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	headers, secrets, err := c.credentials()
	if err != nil {
		err = fmt.Errorf("target %s: %w", c.target.Name, err)
		c.late.Store(&late{err: err})
		return err
	}
	c.keepCredentials(headers, secrets)
	return nil
}

// keepCredentials replaces the credentials. The old ones stay hidden, because answers to requests with them may still
// come.
func (c *Client) keepCredentials(headers []header, secrets []string) {
	for old := c.hidden.Load(); ; old = c.hidden.Load() {
		if now := old.with(secrets, nil); now == old || c.hidden.CompareAndSwap(old, now) {
			break
		}
	}
	var l late
	for _, h := range headers {
		if h.late {
			name := textproto.CanonicalMIMEHeaderKey(h.name)
			value := strings.NewReplacer("\r", " ", "\n", " ").Replace(h.value) // it begins no line of its own
			l.lines = append(l.lines, line{[]byte("\r\n" + name + ":"), []byte(name + ": " + value + "\r\n")})
		}
	}
	if l.lines != nil {
		c.late.Store(&l)
	}
}

var (
	headEnd       = []byte("\r\n\r\n")
	noCredentials late
)

// compose returns a message with its credentials and with what is sent back: first is its beginning, or all of a small
// message.
func (l *Lane) compose(message []byte) (first, rest []byte, err error) {
	late := l.client.late.Load()
	switch {
	case late == nil && len(l.back) == 0:
		return message, nil, nil
	case late == nil:
		late = &noCredentials
	case late.err != nil:
		return message, nil, late.err
	}
	head := bytes.Index(message, headEnd) + len("\r\n")
	begin := max(head, min(len(message), beginBytes))
	l.first = append(l.first[:0], message[:head]...)
	for _, line := range late.lines {
		if !bytes.Contains(message[:head], line.key) {
			l.first = append(l.first, line.text...)
		}
	}
	l.first = append(l.first, l.back...)
	l.first = append(l.first, message[head:begin]...)
	return l.first, message[begin:], nil
}
