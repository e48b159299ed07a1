// Package web is the HTTP side of replayd: /metrics, health and readiness, the landing page; TLS and passwords are
// exporter-toolkit's.
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
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/exporter-toolkit/web"
)

// Options of a Server.
type Options struct {
	Listen     string // host:port or :port
	ConfigFile string // exporter-toolkit's web configuration: TLS, passwords; "" for neither
	Registry   *prometheus.Registry
	Version    string
	Log        *slog.Logger
}

// A Server answers scrapes and probes.
type Server struct {
	options  Options
	listener net.Listener
	scheme   string // http or https
	http     *http.Server
	ready    atomic.Bool
}

// Bounds on what one client may hold.
const (
	headerTimeout = 10 * time.Second
	writeTimeout  = 60 * time.Second
	idleTimeout   = 5 * time.Minute // longer than any scrape interval in use
	maxHeader     = 64 << 10        // bytes
	maxScrapes    = 8               // at once
	closing       = 5 * time.Second // for answers under way when the server stops
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
	s := &Server{options: o, listener: l, scheme: scheme}
	mux, err := s.mux()
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s.http = &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	return s, nil
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

// Run answers until ctx is cancelled, then lets answers under way end.
func (s *Server) Run(ctx context.Context) error {
	stopped := make(chan error, 1)
	cancel := context.AfterFunc(ctx, func() {
		grace, done := context.WithTimeout(context.Background(), closing)
		defer done()
		stopped <- s.http.Shutdown(grace)
	})
	systemd, addresses := false, []string{s.options.Listen}
	err := web.Serve(s.listener, s.http, &web.FlagConfig{
		WebListenAddresses: &addresses, WebSystemdSocket: &systemd, WebConfigFile: &s.options.ConfigFile,
	}, s.options.Log)
	if cancel() {
		return fmt.Errorf("web: %w", err) // it ended by itself
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(err, <-stopped)
	}
	return <-stopped
}

func (s *Server) mux() (http.Handler, error) {
	landing, err := web.NewLandingPage(web.LandingConfig{
		Name:        "replayd",
		Description: "Replays LLM request traces and measures what a client sees.",
		Version:     s.options.Version,
		Profiling:   "false",
		Links: []web.LandingLinks{
			{Address: "metrics", Text: "Metrics", Description: "what Prometheus scrapes"},
			{Address: "-/healthy", Text: "Healthy", Description: "200 while the process answers"},
			{Address: "-/ready", Text: "Ready", Description: "200 once replayd is up; never depends on a target"},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("landing page: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.onceReady(promhttp.InstrumentMetricHandler(s.options.Registry, promhttp.HandlerFor(s.options.Registry, promhttp.HandlerOpts{
		EnableOpenMetrics:   true,
		MaxRequestsInFlight: maxScrapes,
		ErrorLog:            slog.NewLogLogger(s.options.Log.Handler(), slog.LevelError),
	}))))
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "replayd is healthy.")
	})
	mux.Handle("GET /-/ready", s.onceReady(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "replayd is ready.")
	})))
	mux.Handle("GET /{$}", landing)
	return mux, nil
}

func (s *Server) onceReady(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.ready.Load() {
			http.Error(w, "replayd is not ready.", http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, r)
	})
}
