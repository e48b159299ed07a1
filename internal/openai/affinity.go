package openai

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"replayd/internal/measure"

	"github.com/prometheus/common/config"
	"github.com/valyala/fasthttp"
)

// An Echo is a header of answers that later requests of a session send back, as routers want it that name a replica in it.
type Echo struct {
	answer string // name in answers
	line   []byte // beginning of the line in requests
	cookie bool   // of Set-Cookie, whose cookies go back under Cookie
}

const setCookie = "Set-Cookie"

// NewEcho returns the Echo of a header that CheckEcho has accepted.
func NewEcho(name string) *Echo {
	name = http.CanonicalHeaderKey(name)
	e := &Echo{answer: name, cookie: name == setCookie}
	e.line = []byte(EchoedAs(name) + ": ")
	return e
}

// EchoedAs returns the name under which requests send an answer's header back.
func EchoedAs(name string) string {
	if name = http.CanonicalHeaderKey(name); name == setCookie {
		return "Cookie"
	}
	return name
}

// CheckEcho returns why the header of an answer cannot be sent back.
func CheckEcho(name string) error {
	if http.CanonicalHeaderKey(name) == setCookie {
		return nil
	}
	return CheckHeader(name, "a")
}

// CheckReplicaHeader returns why no header of an answer has a name.
func CheckReplicaHeader(name string) error {
	if !isToken(name) || len(name) > maxHeaderValue {
		return fmt.Errorf("want a header name, got %q", name[:min(len(name), 64)])
	}
	if http.CanonicalHeaderKey(name) == setCookie {
		return errors.New("want a header with the name of a replica, got Set-Cookie")
	}
	return nil
}

// HeaderSet returns the name under which a target's own headers have a header; "": they have none.
func HeaderSet(h *config.Headers, name string) string {
	if h == nil {
		return ""
	}
	for _, own := range slices.Sorted(maps.Keys(h.Headers)) {
		if strings.EqualFold(own, name) {
			return own
		}
	}
	return ""
}

// maxEcho bounds a value that is sent back, in bytes.
const maxEcho = 4 << 10

// SendBack has the next message of the lane carry a value in the line of e; none where the value is empty. It comes before Begin.
func (l *Lane) SendBack(e *Echo, value []byte) {
	if l.back = l.back[:0]; len(value) > 0 {
		l.back = append(append(append(l.back, e.line...), value...), "\r\n"...)
	}
}

// Echoed returns the value that the answer of the last request had in the header of Hooks.Echo, valid until the next. It is empty unless
// it can be sent back, which is at most 4 KiB of printable ASCII.
func (l *Lane) Echoed() []byte { return l.echoed }

// Echo says what became of the header of Hooks.Echo in the answer of the last request.
func (l *Lane) Echo() measure.Echo { return l.echo }

// keepEcho keeps the value of an answer's header for the requests after it. A refusal has none: it may come from the router itself.
func (x *exchange) keepEcho() {
	e := x.hooks.Echo
	if e == nil || x.req.Status < 200 || x.req.Status > 299 {
		return
	}
	if e.cookie {
		for _, line := range x.head.Cookies() {
			pair, _, _ := bytes.Cut(line, []byte(";"))
			if len(x.echoed) > 0 {
				x.echoed = append(x.echoed, "; "...)
			}
			x.echoed = append(x.echoed, pair...)
		}
	} else {
		x.echoed = append(x.echoed, x.head.Peek(e.answer)...)
	}
	x.echoed = bytes.Trim(x.echoed, " \t")
	switch {
	case len(x.echoed) == 0:
		x.echo = measure.EchoMissing
	case len(x.echoed) > maxEcho || bytes.ContainsFunc(x.echoed, func(r rune) bool { return r < ' ' || r > '~' }):
		x.echo, x.echoed = measure.EchoUnusable, x.echoed[:0]
	default:
		x.echo = measure.EchoKept
	}
}

// Bounds of the names of replicas.
const (
	maxReplicaName = 128 // bytes of a name; what is longer is cut
	keptReplicas   = 256 // names that are allocated once
)

// replica returns the name of the replica that the head of an answer names; "": none. A name that was seen before is not allocated again.
func (c *Client) replica(head *fasthttp.ResponseHeader) string {
	if c.target.ReplicaHeader == "" {
		return ""
	}
	raw := head.Peek(c.target.ReplicaHeader)
	raw = raw[:min(len(raw), maxReplicaName)]
	if len(raw) == 0 {
		return ""
	}
	known := c.replicas.Load()
	if known != nil {
		if name, ok := (*known)[string(raw)]; ok {
			return name
		}
	}
	key := string(raw)
	name := strings.ToValidUTF8(key, "\uFFFD")
	more := map[string]string{key: name}
	if known != nil {
		maps.Copy(more, *known)
	}
	if len(more) <= keptReplicas {
		c.replicas.CompareAndSwap(known, &more) // where another answer was faster, the next one does it
	}
	return name
}
