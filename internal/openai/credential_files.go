package openai

import (
	"bytes"
	"context"
	"fmt"
	"net/textproto"
	"slices"
	"strings"
	"time"
)

// Messages are built long before they are written. So what comes from files with credentials is not in them: it is put in when a
// message is written, and a key that was changed or taken away acts then. The files are read by WatchCredentials alone, every
// credentialsAge: a slow disk must not hold up a write, or the pacer.
const credentialsAge = 900 * time.Millisecond

// late are the header lines from files, or why these cannot be read. It never changes.
type late struct {
	lines []line
	err   error
}

type line struct {
	key  []byte // the end of the line before it and its own name: a message that has it has a request header of that name
	text []byte
}

// Ready says why no message can be written now: a file with credentials could not be read. It reads none itself.
func (c *Client) Ready() error {
	if l := c.late.Load(); l != nil {
		return l.err
	}
	return nil
}

// WatchCredentials reads the files with credentials again and again until ctx ends. It returns at once where there are none.
func (c *Client) WatchCredentials(ctx context.Context) {
	if c.late.Load() == nil {
		return
	}
	tick := time.NewTicker(credentialsAge)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = c.readCredentials() // Ready gives it
		case <-ctx.Done():
			return
		}
	}
}

// readCredentials reads the files, where there are any, and says as Ready does why they cannot be read.
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

// keepCredentials takes credentials that were read. Those that they replace stay hidden: answers to them are on the way.
func (c *Client) keepCredentials(headers []header, secrets []string) {
	if old := c.secrets.Load(); old == nil || !slices.Equal(old.values, secrets) {
		if old != nil {
			c.hide(old.values)
		}
		c.secrets.Store(hide(secrets))
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

var headEnd = []byte("\r\n\r\n")

// compose gives a message with its credentials: first is the beginning, all of a small one.
func (l *Lane) compose(message []byte) (first, rest []byte, err error) {
	late := l.client.late.Load()
	if late == nil {
		return message, nil, nil
	}
	if late.err != nil {
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
	l.first = append(l.first, message[head:begin]...)
	return l.first, message[begin:], nil
}
