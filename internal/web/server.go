// Package web is the HTTP side of replayd: /metrics, health and readiness, reload and pause, the running configuration,
// profiles, the landing page and whatever live page it is given; TLS and passwords are exporter-toolkit's.
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
)

// Options of a Server.
type Options struct {
	Listen     string // host:port or :port
	ConfigFile string // exporter-toolkit's web configuration: TLS, passwords; "" for neither
	Registry   *prometheus.Registry
	Version    string
	Log        *slog.Logger

	// Lifecycle lets POST and PUT of /-/reload, /-/pause and /-/resume work; without it they answer 403.
	Lifecycle bool
	// Reload reads the configuration again. It may take minutes, and two may come at once. Its error is the answer, all
	// lines of it. nil: there is no /-/reload.
	Reload func(context.Context) error
	// Pause holds a workload back, or lets it go again; "" is all of them. An error is that there is none of that name,
	// or the context's when it took too long. nil: there is no /-/pause and no /-/resume.
	Pause func(ctx context.Context, workload string, paused bool) error
	// Profiling puts Go's profiles under /debug/pprof/.
	Profiling bool
	// Config gives the running configuration as YAML without its secrets. nil: there is no /config.
	Config func() ([]byte, error)
	// Live answers at /live and below. Its streams may last: they set their own write deadlines, with
	// http.ResponseController, and end with their request's context. nil: there is none.
	Live http.Handler
}

// A Server answers scrapes, probes and people.
type Server struct {
	options  Options
	listener net.Listener
	scheme   string // http or https
	http     *http.Server
	ready    atomic.Bool
	press    *press
	limit    writeLimit
}

// Bounds on what one client may hold.
const (
	readTimeout  = 10 * time.Second // for a request's header, and again for its body
	writeTimeout = 60 * time.Second
	idleTimeout  = 5 * time.Minute // longer than any scrape interval in use
	maxHeader    = 64 << 10        // bytes
	maxForm      = 4 << 10         // bytes
	closing      = 5 * time.Second // for answers under way when the server stops
)

// Listen binds the address, so that one in use is an error before anything else starts. The error holds a
// *ConfigError when the web configuration is at fault. Nothing is answered before Run.
func Listen(o Options) (*Server, error) {
	scheme, err := schemeOf(o.ConfigFile)
	if err != nil {
		return nil, &ConfigError{o.ConfigFile, err}
	}
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("web.listen: %w", err)
	}
	s, err := newServer(o, scheme, l)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return s, nil
}

func newServer(o Options, scheme string, l net.Listener) (*Server, error) {
	s := &Server{options: o, listener: l, scheme: scheme, press: newPress()}
	mux, err := s.mux()
	if err != nil {
		return nil, err
	}
	s.http = &http.Server{
		Handler: bounded(mux), ReadHeaderTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// policy is for the landing page and Go's profiles, which have their style in the page; the live page has its own.
const policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// bounded holds for every request. The handlers get the ResponseWriter itself, not one around it: the live page sets
// deadlines and flushes through it.
func bounded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store") // all of it is about now
		w.Header().Set("Referrer-Policy", "no-referrer")
		if w.Header().Get("Content-Security-Policy") == "" { // else the web configuration has one
			w.Header().Set("Content-Security-Policy", policy)
		}
		if r.ContentLength != 0 { // net/http waits without limit for a body, also for one that is not read
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTimeout))
		}
		h.ServeHTTP(w, r)
	})
}

// URL is the address that a browser on this host would open.
func (s *Server) URL() string {
	host, port, _ := net.SplitHostPort(s.listener.Addr().String()) // a listener's own address always splits
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return s.scheme + "://" + net.JoinHostPort(host, port)
}

// Ready says that replayd itself is up: until then /-/ready and /metrics answer 503, so that no scrape sees a page on
// which series are still missing. It never depends on a target: a sidecar must not take its pod out of service with it.
func (s *Server) Ready() { s.ready.Store(true) }

// Run answers until ctx is cancelled. That ends the context of every request, so that streams stop at once; other
// answers under way may take a few seconds, then they are cut.
func (s *Server) Run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer s.listener.Close() // exporter-toolkit leaves it open when the web configuration has become bad meanwhile
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() { stopped <- s.stop() })
	systemd, addresses := false, []string{s.options.Listen}
	err := web.Serve(s.listener, s.http, &web.FlagConfig{
		WebListenAddresses: &addresses, WebSystemdSocket: &systemd, WebConfigFile: &s.options.ConfigFile,
	}, slog.New(withoutValues{s.options.Log.Handler()}))
	end() // it may have ended by itself
	if errors.Is(err, http.ErrServerClosed) {
		return <-stopped
	}
	return fmt.Errorf("web: %w", servingError{errors.Join(err, <-stopped)})
}

// stop closes the address, then lets answers under way end.
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
