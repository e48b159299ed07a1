// Package openai speaks the OpenAI HTTP API on the wire. It is the only package that imports fasthttp.
//
// A [Client] knows one target: it builds whole HTTP messages ahead of time ([Client.AppendRequest]) and opens
// connections. A [Lane] owns one connection, sends one message at a time over it, and fills a measure.Request while the
// answer arrives, streamed or as one JSON object. Nothing is allocated between the socket and the timeline.
// [Client.Models] and [Client.Overhead] probe a target for its models and for the tokens that its chat template
// adds.
//
// Two inner packages know nothing of requests: internal/wire moves bytes and timestamps them, internal/chunk parses the JSON of
// answers.
package openai

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/config"

	"replayd/internal/fault"
	"replayd/internal/openai/internal/wire"
	"replayd/internal/scalar"
	"replayd/internal/secret"
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

// A RetryMode says which requests are sent a second time.
type RetryMode string

// Retry modes.
const (
	RetryStale RetryMode = "stale" // those that a kept connection has lost, because the server had just closed it
	RetryNever RetryMode = "never"
)

// A ConnectionMode says which connection a request goes out on.
type ConnectionMode string

// Connection modes.
const (
	ConnectionsKept ConnectionMode = "kept" // one that another request has left, or one that was opened ahead
	ConnectionsEach ConnectionMode = "each" // a new one, opened at the due instant
)

// Timeouts of one request; 0 is none.
//
// Pings, comments and blank lines are no progress: a server that only keeps the connection alive runs into
// FirstToken or Stall. An answer in one piece has neither a first token nor anything to stall: it is bounded by Connect and
// Total, and by nothing once it is connected where Total is 0.
type Timeouts struct {
	Connect    time.Duration `koanf:"connect"`     // name resolution, TCP and TLS together, for each connection
	FirstToken time.Duration `koanf:"first_token"` // from the write to the first content chunk; covers the write itself
	Stall      time.Duration `koanf:"stall"`       // from one data event to the next, once content has come
	Total      time.Duration `koanf:"total"`       // from Do to the end of the answer, dialing and the retry included
}

// DefaultIdle is the idle time after which a kept connection is not used again: uvicorn closes connections after 5 s.
const DefaultIdle = 4 * time.Second

// Options say where a server is and how it is asked, with the keys of a target.
type Options struct {
	URL      string `koanf:"url"`           // http or https; without a scheme http. It may end in /v1 or in an endpoint
	Path     string `koanf:"endpoint_path"` // of the endpoint, behind the path of URL, with a query; "": that of API
	API      API    `koanf:"api"`
	Server   string `koanf:"server"`          // the engine, one of Servers; "": as the list of models says
	Stream   bool   `koanf:"stream"`          // read by the caller, request by request
	PerChunk bool   `koanf:"per_chunk_usage"` // ask for usage with each chunk, to know the tokens of the first

	// Pods are host:port each, or one dns+NAME:PORT that stands for all of its addresses; none: the server is at URL.
	Pods scalar.Words `koanf:"pods"`

	// OmitStreamOptions is for servers that refuse them. There is no usage at the end of a stream then.
	OmitStreamOptions bool `koanf:"omit_stream_options"`

	Model string `koanf:"model"` // empty: the only model that the server lists, see Client.Choose

	// HTTP names files that are read again: credentials by WatchCredentials, certificates for every connection.
	HTTP      config.HTTPClientConfig `koanf:"http"`
	ExtraBody map[string]any          `koanf:"extra_body"` // merged into every body; replaces this package's own fields
	Output    OutputMode              `koanf:"output"`
	Replica   string                  `koanf:"replica_header"` // header of answers that names the replica; "": none
	Timeouts  Timeouts                `koanf:"timeouts"`
	Idle      time.Duration           `koanf:"idle"`  // a connection idle for longer is not used again; 0: DefaultIdle
	Retry     RetryMode               `koanf:"retry"` // "": RetryStale

	Host         string         `koanf:"host_header"`   // "": that of URL
	Connections  ConnectionMode `koanf:"connections"`   // "": ConnectionsKept
	ConnectAhead time.Duration  `koanf:"connect_ahead"` // before the due instant a connection is opened; 0: at the instant
}

// A Target is a server, and how this process speaks to it.
type Target struct {
	Options
	Name      string // in errors
	UserAgent string // "replayd/VERSION"

	// Dial opens the transport of a connection; nil: a net.Dialer. A transport other than TCP has no kernel
	// timestamps.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Resolve returns the addresses of a name of pods; nil: those of the system's resolver.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
}

// A Client talks to one target. All its methods may be called at once from any goroutine.
type Client struct {
	target   Target
	base     endpoint
	extra    []field
	own      []string // secrets in target.ExtraBody
	clock    *wire.Clock
	served   atomic.Pointer[served]
	form     atomic.Uint64        // counts the changes of served
	inline   []header             // credentials that are not in files
	late     atomic.Pointer[late] // credentials in files; nil: none
	reading  sync.Mutex           // held while the files are read
	hidden   atomic.Pointer[hidden]
	replicas atomic.Pointer[replicaNames] // nil: none came
	stamps   io.Closer                    // keeps the kernel's timestamps on; nil: none

	pods    atomic.Pointer[pods]
	looking sync.Mutex   // held during a look-up of pods
	failed  atomic.Int64 // look-ups
	resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	turn    atomic.Uint64 // counts lanes: probes go round the pods
	needed  needs

	connected atomic.Bool // a connection was made
	untyped   atomic.Bool // an answer had no Content-Type
	withheld  atomic.Bool // see Withheld
	answered  atomic.Int64
	tls       tlsFiles
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
}

// New checks t and reports every fault at once. It opens no connection, but it reads the files that t.HTTP names.
func New(t Target) (*Client, error) {
	c := &Client{target: t, clock: wire.NewClock(), dial: t.Dial, resolve: t.Resolve}
	c.needed.all = map[*Need]bool{}
	if c.dial == nil {
		c.dial = new(dialer).dial
	}
	if c.resolve == nil {
		c.resolve = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		}
	}
	if c.target.Idle == 0 {
		c.target.Idle = DefaultIdle
	}
	c.hidden.Store(&hidden{})
	if err := c.check().Err(); err != nil {
		return nil, fmt.Errorf("target %s: %w", t.Name, err)
	}
	c.served.Store(&served{model: t.Model, engine: engines[t.Server]})
	c.stamps = wire.KeepStamps()
	return c, nil
}

// check parses the target and returns every fault in it.
func (c *Client) check() fault.List {
	t := c.target
	var f fault.List
	c.base, f = t.endpoint()
	f = append(f, t.Check()...)
	addresses, _ := t.podAddresses() // Check has the faults
	if len(t.Pods) == 0 {
		addresses = []string{c.base.address}
	}
	c.usePods(addresses)
	c.own = slices.Concat(secretsIn(t.ExtraBody, false), secret.InQuery(c.base.asks(t.Path)))
	var err error
	c.extra, err = fieldsOf(t.ExtraBody)
	f = append(f, fault.Of(err)...)
	if c.target.HTTP, err = checkHTTP(t.HTTP); err != nil {
		return append(f, fault.Of(err)...)
	}
	headers, secrets, err := c.credentials()
	f = append(f, fault.Of(err)...)
	c.keepCredentials(headers, secrets)
	c.inline = slices.DeleteFunc(headers, func(h header) bool { return h.late })
	if c.base.secure {
		_, err = c.tlsConfig(context.Background())
		f = append(f, fault.Of(err)...)
	}
	return f
}

// Check returns the faults of all fields but the address and HTTP, which New checks.
func (o *Options) Check() (f fault.List) {
	f.OneOf("api", string(o.API), string(Chat), string(Completions))
	_, pods := o.podAddresses()
	f = append(f, pods...)
	f.OneOf("output", string(o.Output), string(OutputExact), string(OutputMax), string(OutputFree))
	f.OneOf("retry", string(cmp.Or(o.Retry, RetryStale)), string(RetryStale), string(RetryNever))
	f.If(!isHost.MatchString(o.Host), "host_header", "want a host name or address, with a port or without, got %q", o.Host)
	f.OneOf("connections", string(cmp.Or(o.Connections, ConnectionsKept)), string(ConnectionsKept), string(ConnectionsEach))
	f.NotNegative("connect_ahead", o.ConnectAhead)
	f.NotNegative("timeouts.connect", o.Timeouts.Connect)
	f.NotNegative("timeouts.first_token", o.Timeouts.FirstToken)
	f.NotNegative("timeouts.stall", o.Timeouts.Stall)
	f.NotNegative("timeouts.total", o.Timeouts.Total)
	if o.Server != "" {
		f.OneOf("server", o.Server, Servers()...)
	}
	f.If(o.PerChunk && !o.Stream, "per_chunk_usage", "needs streamed answers, got stream: false")
	_, options := o.ExtraBody["stream_options"]
	f.If(o.OmitStreamOptions && o.PerChunk, "omit_stream_options", "contradicts per_chunk_usage: want one of them")
	f.If(o.OmitStreamOptions && options, "omit_stream_options",
		"contradicts stream_options in extra_body: want one of them")
	f.If(severalIn(o.ExtraBody["n"]), "extra_body.n", "want 1, got %v: %s", o.ExtraBody["n"], whyOne)
	f.If(o.Idle < 0, "idle", "want a duration > 0, got %v", o.Idle)
	if o.Replica != "" {
		if err := checkReplicaHeader(o.Replica); err != nil {
			f.Add("replica_header", "%v", err)
		}
	}
	return f
}

// Answered returns how many requests of lanes have ended ok. Probes and lists of models are not among them.
func (c *Client) Answered() int64 { return c.answered.Load() }

// Untyped reports whether an answer had no Content-Type. It was read as what was asked for.
func (c *Client) Untyped() bool { return c.untyped.Load() }

// Target returns the target, which must not be changed.
func (c *Client) Target() *Target { return &c.target }

// Close closes the connections in the pools and stops Warm from adding any. Lanes are closed by their owners.
func (c *Client) Close() {
	for _, p := range c.pods.Load().all {
		p.pool.Close()
	}
	if c.stamps != nil {
		_ = c.stamps.Close() // it holds nothing; closing it twice is no fault
	}
}
