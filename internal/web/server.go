// Package web is replayd's HTTP server: /metrics, health and readiness, reload and pause, the running configuration,
// profiles, the landing page, the runbook and an optional live page. TLS and passwords are exporter-toolkit's.
package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/exporter-toolkit/web"

	"replayd/internal/fault"
	"replayd/internal/visitors"
)

// Options configures a Server.
type Options struct {
	Listen     string // host:port or :port
	ConfigFile string // exporter-toolkit's web configuration: TLS, passwords; "" for neither
	Registry   *prometheus.Registry
	Version    string
	Log        *slog.Logger

	// MaxConnections returns how many connections are open at once at most; it is asked for each new one. nil: visitors.Most.
	MaxConnections func() int
	// AllowedHosts are names at which browsers may use the server, besides addresses, localhost and the machine's name. "*": any.
	AllowedHosts []string
	// Healthy returns why the process must be restarted. It must not wait. nil: it is always healthy while it answers.
	Healthy func() error
	// Lifecycle enables POST and PUT of /-/reload, /-/pause, /-/resume and /-/comparisons/NAME/restart; otherwise they answer 403.
	Lifecycle bool
	// Reload reads the configuration again. It may take minutes, and two calls may run at once. Its error is the body
	// of the response. nil: no /-/reload.
	Reload func(context.Context) error
	// Pause pauses or resumes a workload; "" stands for all. It returns an error if no workload has that name, or the
	// context's error if it took too long. nil: no /-/pause and /-/resume.
	Pause func(ctx context.Context, workload string, paused bool) error
	// Comparisons returns the state of all comparisons as JSON. nil: no /-/comparisons.
	Comparisons func() ([]byte, error)
	// RestartComparison makes a comparison forget its evidence, unless that is about the version already; "" stands
	// for no version. anew says that it was forgotten. It returns an error if none has that name. nil: no restart.
	RestartComparison func(ctx context.Context, name, version string) (anew bool, err error)
	// Profiling serves Go's profiles under /debug/pprof/.
	Profiling bool
	// Config returns the running configuration as YAML without its secrets. nil: no /config.
	Config func() ([]byte, error)
	// Live serves /live and all paths below it. Its streams may last: they set their own write deadlines with
	// http.ResponseController, and end with the context of their request. nil: no live page.
	Live http.Handler
}

// A Server serves scrapes, health checks and browsers.
type Server struct {
	options  Options
	listener net.Listener
	scheme   string // http or https
	http     *http.Server
	ready    atomic.Bool
	press    *press
	limit    writeLimit
	door     *visitors.Door
}

// Limits of one client.
const (
	readTimeout  = 10 * time.Second // for the header of a request, and again for its body
	writeTimeout = 60 * time.Second
	idleTimeout  = 5 * time.Minute // longer than any scrape interval in use
	maxHeader    = 8 << 10         // bytes; net/http takes 4 KiB more of a first request, and up to 8 KiB more of later ones
	maxForm      = 4 << 10         // bytes
	closing      = 5 * time.Second // for responses in progress when the server stops
)

// Listen binds the address, so that an address in use fails before anything else starts. The error is a fault of
// ConfigFile if the web configuration is invalid. Requests are served from Run on.
func Listen(o Options) (*Server, error) {
	scheme, err := schemeOf(o.ConfigFile)
	if err != nil {
		return nil, configError(err)
	}
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fault.At("web.listen", err)
	}
	s, err := newServer(o, scheme, l)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return s, nil
}

func newServer(o Options, scheme string, l net.Listener) (*Server, error) {
	if o.MaxConnections == nil {
		o.MaxConnections = func() int { return visitors.Most }
	}
	door := visitors.NewDoor(o.MaxConnections)
	s := &Server{options: o, listener: door.Listener(l), scheme: scheme, press: newPress(), door: door}
	o.Registry.MustRegister(door)
	mux, err := s.mux()
	if err != nil {
		return nil, err
	}
	s.http = &http.Server{
		Handler: bounded(s.known(mux)), ReadHeaderTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
		// With TLS, HTTP/2 may be spoken. By default one connection could have a frame of 1 MiB and 250 requests in memory.
		HTTP2: &http.HTTP2Config{MaxReadFrameSize: 16 << 10, MaxConcurrentStreams: 16, MaxReceiveBufferPerConnection: 64 << 10, MaxReceiveBufferPerStream: 16 << 10},
	}
	door.Serve(s.http)
	return s, nil
}

// policy is the Content-Security-Policy of the landing page and Go's profiles, which have inline styles; the live page
// sets its own.
const policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// bounded sets headers and the read deadline of every request. It passes on the original ResponseWriter, because the
// live page sets deadlines and flushes through it.
func bounded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store") // all responses show the current state
		w.Header().Set("Referrer-Policy", "no-referrer")
		if w.Header().Get("Content-Security-Policy") == "" { // else the web configuration sets one
			w.Header().Set("Content-Security-Policy", policy)
		}
		if r.ContentLength != 0 { // net/http waits for a body without limit, even if no handler reads it
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTimeout))
		}
		h.ServeHTTP(w, r)
	})
}

// URL returns the address for a browser on this host.
func (s *Server) URL() string {
	host, port, _ := net.SplitHostPort(s.listener.Addr().String()) // the address of a listener always splits
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return s.scheme + "://" + net.JoinHostPort(host, port)
}

// Ready marks replayd as ready. Before that, /-/ready and /metrics answer 503, so that no scrape sees a page with
// missing series. Readiness never depends on a target: a sidecar must not make its pod unready.
func (s *Server) Ready() { s.ready.Store(true) }

// Run serves until ctx is cancelled. This cancels the context of every request, so that streams stop at once. Other
// responses in progress have a few seconds to finish; then their connections are closed.
func (s *Server) Run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer s.listener.Close() // exporter-toolkit does not close the listener if the web configuration has become invalid
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() { stopped <- s.stop() })
	systemd, addresses := false, []string{s.options.Listen}
	err := web.Serve(s.listener, s.http, &web.FlagConfig{
		WebListenAddresses: &addresses, WebSystemdSocket: &systemd, WebConfigFile: &s.options.ConfigFile,
	}, slog.New(withoutValues{s.options.Log.Handler()}))
	end() // Serve may have failed on its own
	if errors.Is(err, http.ErrServerClosed) {
		return <-stopped
	}
	return fmt.Errorf("web: %w", servingError{errors.Join(err, <-stopped)})
}

// stop closes the listener, then waits for responses in progress.
func (s *Server) stop() error {
	grace, done := context.WithTimeout(context.Background(), closing)
	defer done()
	err := s.http.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		s.options.Log.Info("HTTP connections were closed: they did not finish in time", "after", closing)
		err = s.http.Close()
	}
	return err
}
