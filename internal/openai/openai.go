// Package openai speaks the OpenAI HTTP API on the wire. It is the only package that imports fasthttp.
//
// A [Client] knows one target: it builds whole HTTP messages ahead of time ([Client.AppendRequest]) and opens
// connections. A [Lane] owns one connection, sends one message at a time over it, and fills a measure.Request while the
// answer arrives, streamed or as one JSON object. Nothing is allocated between the socket and the timeline. A [Probe] finds
// out a target's model and the overhead of its chat template before load is sent.
//
// Two inner packages know nothing of requests: internal/wire moves bytes and timestamps them, internal/chunk parses the JSON of
// answers.
package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/config"

	"replayd/internal/openai/internal/wire"
)

// An API is one of the two generating endpoints.
type API string

// APIs.
const (
	Chat        API = "chat"        // /v1/chat/completions
	Completions API = "completions" // /v1/completions
)

// An OutputMode says how the length of an answer is requested. Without a length a request has no limit in any mode.
type OutputMode string

// Output modes.
const (
	OutputExact OutputMode = "exact" // the limit, and what the engine needs to reach it
	OutputMax   OutputMode = "max"   // only the limit
	OutputFree  OutputMode = "free"  // nothing
)

// Timeouts of one request; 0 is none.
//
// Pings, comments and blank lines are no progress: a server that only keeps the connection alive runs into
// FirstToken or Stall. An answer in one piece has neither a first token nor anything to stall: it is bounded by Connect and
// Total, and by nothing once it is connected where Total is 0.
type Timeouts struct {
	Connect    time.Duration // name resolution, TCP and TLS together, for each connection
	FirstToken time.Duration // from the write to the first content chunk; covers the write itself
	Stall      time.Duration // from one data event to the next, once content has come
	Total      time.Duration // from Do to the end of the answer, dialing and the retry included
}

// DefaultIdle is the idle time after which a kept connection is not used again: uvicorn closes connections after 5 s.
const DefaultIdle = 4 * time.Second

// A Target has the address of a server and the form of its requests.
type Target struct {
	Name      string // in errors
	URL       string // http or https (http when it has no scheme), with or without a path; a trailing /v1 is understood
	API       API
	Model     string                  // empty: the only model that the server lists, see Client.Choose
	HTTP      config.HTTPClientConfig // files in it are read again: see WatchCredentials; certificates for every connection
	PerChunk  bool                    // ask for usage with each chunk of a stream, and take the first chunk's tokens from it
	ExtraBody map[string]any          // merged into every body; replaces this package's own fields
	Output    OutputMode
	Timeouts  Timeouts
	Idle      time.Duration // 0: DefaultIdle
	UserAgent string        // "replayd/VERSION"

	ReplicaHeader string // header of answers that names the replica that answers; "": none

	// Dial opens the transport of a connection; nil: a net.Dialer. A transport other than TCP has no kernel
	// timestamps.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// A Client talks to one target. All its methods may be called at once from any goroutine.
type Client struct {
	target         Target
	base           endpoint
	extra          []field
	own            []string // secrets in target.ExtraBody
	clock          *wire.Clock
	served         atomic.Pointer[served]
	inline         []header                          // credentials that are not in files
	late           atomic.Pointer[late]              // credentials in files; nil: there are none
	reading        sync.Mutex                        // held while the files are read
	secrets        atomic.Pointer[hidden]            // what no error text may show, of the credentials that were read last
	requestSecrets atomic.Pointer[hidden]            // likewise, of the request headers of all workloads
	replicas       atomic.Pointer[map[string]string] // names of replicas, so that each is allocated once; nil: none came
	pool           wire.Pool
	stamps         io.Closer // keeps the kernel's timestamps on; nil: there are none

	connected atomic.Bool // a connection was made
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
}

// New checks t and reports every fault at once. It opens no connection, but it reads the files that t.HTTP names.
func New(t Target) (*Client, error) {
	c := &Client{target: t, clock: wire.NewClock(), dial: t.Dial}
	if c.dial == nil {
		c.dial = new(net.Dialer).DialContext
	}
	if c.target.Idle == 0 {
		c.target.Idle = DefaultIdle
	}
	if errs := c.check(); len(errs) > 0 {
		return nil, fmt.Errorf("target %s: %w", t.Name, errors.Join(errs...))
	}
	c.served.Store(&served{model: t.Model})
	c.stamps = wire.KeepStamps()
	return c, nil
}

// check parses the target and returns every fault in it.
func (c *Client) check() (errs []error) {
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	t := c.target
	var err error
	c.base, err = parseURL(t.URL)
	note(err)
	errs = append(errs, t.optionFaults()...)
	c.own = secretsIn(t.ExtraBody, false)
	c.extra, err = fieldsOf(t.ExtraBody)
	note(err)
	c.target.HTTP, err = checkHTTP(t.HTTP)
	note(err)
	if err != nil {
		return errs
	}
	headers, secrets, err := c.credentials()
	note(err)
	c.keepCredentials(headers, secrets)
	c.inline = slices.DeleteFunc(headers, func(h header) bool { return h.late })
	if c.base.secure {
		_, err = c.tlsConfig(context.Background())
		note(err)
	}
	return errs
}

// optionFaults are the faults of all fields but the address and HTTP.
func (t *Target) optionFaults() (errs []error) {
	if t.API != Chat && t.API != Completions {
		errs = append(errs, fmt.Errorf("api: want %s or %s, got %q", Chat, Completions, t.API))
	}
	switch t.Output {
	case OutputExact, OutputMax, OutputFree:
	default:
		errs = append(errs, fmt.Errorf("output: want %s, %s or %s, got %q", OutputExact, OutputMax, OutputFree, t.Output))
	}
	for _, d := range []struct {
		key string
		d   time.Duration
	}{
		{"timeouts.connect", t.Timeouts.Connect},
		{"timeouts.first_token", t.Timeouts.FirstToken},
		{"timeouts.stall", t.Timeouts.Stall},
		{"timeouts.total", t.Timeouts.Total},
		{"idle", t.Idle},
	} {
		if d.d < 0 {
			errs = append(errs, fmt.Errorf("%s: want 0 or more, got %v", d.key, d.d))
		}
	}
	return errs
}

// Name returns the target's name.
func (c *Client) Name() string { return c.target.Name }

// Timeouts returns the target's timeouts.
func (c *Client) Timeouts() Timeouts { return c.target.Timeouts }

// API returns the target's API.
func (c *Client) API() API { return c.target.API }

// Close closes the connections in the pool and stops Warm from adding any. Lanes are closed by their owners.
func (c *Client) Close() {
	c.pool.Close()
	if c.stamps != nil {
		_ = c.stamps.Close() // it holds nothing; closing it twice is no fault
	}
}
