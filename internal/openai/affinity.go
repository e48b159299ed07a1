package openai

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"replayd/internal/measure"
	"replayd/internal/secret"

	"github.com/prometheus/common/config"
	"github.com/valyala/fasthttp"
	"golang.org/x/net/http/httpguts"
)

// An Echo is a header of answers that later requests of a session send back, as routers want it that name a replica in
// it.
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

// checkReplicaHeader returns why no header of an answer has a name.
func checkReplicaHeader(name string) error {
	if !httpguts.ValidHeaderFieldName(name) || len(name) > maxHeaderValue {
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

// SendBack has the next message of the lane carry the value that Echo.Join returned, in the line of e. It comes before Begin.
func (l *Lane) SendBack(e *Echo, kept []byte) {
	if l.back = l.back[:0]; len(kept) == 0 {
		return
	}
	value := kept
	if e.cookie {
		value = []byte(l.client.cookies(kept))
	}
	if len(value) > 0 {
		l.back = append(append(append(l.back, e.line...), value...), "\r\n"...)
	}
}

// Echoed returns the value of the header of Hooks.Echo in the answer of the last request, for Echo.Join, valid until the next.
// It is empty unless it can be sent back, which is at most 4 KiB of printable ASCII.
func (l *Lane) Echoed() []byte { return l.echoed }

// Echo says what became of the header of Hooks.Echo in the answer of the last request.
func (l *Lane) Echo() measure.Echo { return l.echo }

// storeEcho keeps the value of an answer's header for the requests after it. A refusal has none: it may come from
// the router itself.
func (x *exchange) storeEcho() {
	e := x.hooks.Echo
	if e == nil || x.req.Status < 200 || x.req.Status > 299 {
		return
	}
	said := false
	if e.cookie {
		for _, line := range x.head.Cookies() {
			x.echoed, said = appendCookie(x.echoed, line, time.Now()), true
		}
	} else {
		x.echoed = bytes.Trim(append(x.echoed, x.head.Peek(e.answer)...), " \t")
		said = len(x.echoed) > 0
	}
	switch {
	case !said:
		x.echo = measure.EchoMissing
	case len(x.echoed) == 0:
		x.echo = measure.EchoUnusable
	case e.cookie:
		x.echo = measure.EchoKept
	case len(x.echoed) > maxEcho || bytes.ContainsFunc(x.echoed, func(r rune) bool { return r < ' ' || r > '~' }):
		x.echo, x.echoed = measure.EchoUnusable, x.echoed[:0]
	default:
		x.echo = measure.EchoKept
	}
}

// Bounds of the names of replicas.
const (
	maxReplicaName = 128 // bytes of a name as it is shown
	keptReplicas   = 256 // names that are allocated once
)

// A replicaNames has the names of replicas by the values of the header. Each is allocated once, and again when other
// credentials are hidden.
type replicaNames struct {
	hidden *hidden // that the names do not show
	names  map[string]secret.Text
}

// replica returns the name of the replica that the head of an answer names; "": none. A name that was seen before is
// not allocated again.
func (c *Client) replica(head *fasthttp.ResponseHeader) secret.Text {
	if c.target.Replica == "" {
		return ""
	}
	raw := head.Peek(c.target.Replica)
	if len(raw) == 0 {
		return ""
	}
	known, hidden := c.replicas.Load(), c.hidden.Load()
	current := known != nil && known.hidden == hidden
	if current {
		if name, ok := known.names[string(raw)]; ok {
			return name
		}
	}
	name := hidden.set.Text(string(raw), maxReplicaName)
	more := &replicaNames{hidden, map[string]secret.Text{}}
	if current {
		maps.Copy(more.names, known.names)
	}
	if len(raw) <= maxReplicaName && len(more.names) < keptReplicas {
		more.names[string(raw)] = name
		c.replicas.CompareAndSwap(known, more) // where another answer was faster, the next one does it
	}
	return name
}
