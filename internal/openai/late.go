package openai

import (
	"bytes"
	"fmt"
	"net/textproto"
	"slices"
	"strings"
	"time"
)

// Messages are built long before they are written. So what comes from files with credentials is not in them: it is put in when a
// message is written, and a key that was changed or taken away acts then.
const (
	credentialsAge = time.Second            // a message is written with what the files had at most so long ago
	checkedAge     = 900 * time.Millisecond // Ready reads them again after this: what it has let through is written by then
)

// late are the header lines from files. It never changes.
type late struct {
	read  time.Time // when the files were read
	lines []line
}

type line struct {
	key  []byte // the end of the line before it and its own name: a message that has it has a mark's header of that name
	text []byte
}

// Ready says why no message can be written now: a file with credentials cannot be read. It reads the files where they were
// last read 0.9 s ago or before, so it can be asked for each request.
func (c *Client) Ready() error {
	_, err := c.lateLines(time.Now(), checkedAge)
	return err
}

// lateLines are those of at most age before now.
func (c *Client) lateLines(now time.Time, age time.Duration) (*late, error) {
	l := c.late.Load()
	if l == nil || now.Sub(l.read) < age {
		return l, nil
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	if l = c.late.Load(); now.Sub(l.read) < age { // by another lane
		return l, nil
	}
	headers, secrets, err := c.credentials()
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", c.target.Name, err) // and the next request asks again
	}
	return c.keepCredentials(now, headers, secrets), nil
}

// keepCredentials takes credentials that were read at an instant. Those that they replace stay hidden: answers to them are on
// the way.
func (c *Client) keepCredentials(read time.Time, headers []header, secrets []string) *late {
	if old := c.secrets.Load(); old == nil || !slices.Equal(old.values, secrets) {
		if old != nil {
			c.hide(old.values)
		}
		c.secrets.Store(hide(secrets))
	}
	l := &late{read: read}
	for _, h := range headers {
		if h.late {
			name := textproto.CanonicalMIMEHeaderKey(h.name)
			value := strings.NewReplacer("\r", " ", "\n", " ").Replace(h.value) // it begins no line of its own
			l.lines = append(l.lines, line{[]byte("\r\n" + name + ":"), []byte(name + ": " + value + "\r\n")})
		}
	}
	if l.lines == nil {
		return nil
	}
	c.late.Store(l)
	return l
}

var headEnd = []byte("\r\n\r\n")

// compose gives a message with its credentials: first is the beginning, all of a small one.
func (l *Lane) compose(message []byte) (first, rest []byte, err error) {
	late, err := l.client.lateLines(time.Now(), credentialsAge)
	if err != nil || late == nil {
		return message, nil, err
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
