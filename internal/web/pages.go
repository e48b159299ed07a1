package web

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/prometheus/client_golang/prometheus/promhttp/zstd" // registers zstd compression for promhttp
	"github.com/prometheus/exporter-toolkit/web"
)

func (s *Server) mux() (http.Handler, error) {
	landing, err := web.NewLandingPage(s.landing())
	if err != nil {
		return nil, fmt.Errorf("landing page: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", s.printed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", markup)
		_, _ = io.WriteString(w, "<!DOCTYPE html>\n") // exporter-toolkit's page has no doctype, so browsers would use quirks mode
		landing.ServeHTTP(w, r)
	})))
	mux.Handle("GET /metrics", s.onceReady(s.metrics()))
	mux.HandleFunc("GET /-/healthy", s.healthy)
	mux.Handle("GET /-/ready", s.onceReady(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeText(w, http.StatusOK, "replayd is ready.")
	})))
	s.lifecycle(mux)
	mux.Handle("GET /runbook", s.runbook())
	if s.options.Config != nil {
		mux.Handle("GET /config", s.shown(plain, s.options.Config))
	}
	if s.options.Comparisons != nil {
		mux.Handle("GET /-/comparisons", s.shown("application/json", s.options.Comparisons))
	}
	if s.options.Live != nil {
		mux.Handle("/live", s.options.Live)
		mux.Handle("/live/", s.options.Live)
	}
	if s.options.Profiling {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol) // go tool pprof sends the addresses with POST
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux, nil
}

// landing lists the pages, the live page first.
func (s *Server) landing() web.LandingConfig {
	var links []web.LandingLinks
	add := func(shown bool, address, text, description string) {
		if shown {
			links = append(links, web.LandingLinks{Address: address, Text: text, Description: description})
		}
	}
	add(s.options.Live != nil, "live", "Live page", "what is being replayed and how the servers answer, as it happens")
	add(true, "metrics", "Metrics", "what Prometheus scrapes")
	add(s.options.Config != nil, "config", "Config", "the running configuration, without its secrets")
	add(s.options.Comparisons != nil, "-/comparisons", "Comparisons", "the state of all comparisons, as JSON")
	add(true, "runbook", "Runbook", "what each alert means, and what to do")
	add(true, "-/ready", "Ready", "200 once replayd is up; never depends on a target")
	add(true, "-/healthy", "Healthy", "200 while the process answers and its replay moves")
	return web.LandingConfig{
		Name:        "replayd",
		Description: "Replays LLM request traces and measures what a client sees.",
		Version:     s.options.Version,
		Profiling:   strconv.FormatBool(s.options.Profiling),
		Links:       links,
		// exporter-toolkit's page has no dark mode, and its links are too close for touch screens.
		ExtraCSS: ":root { color-scheme: light dark; }\n#pprof { border-color: currentcolor; }\nli { margin: .75rem 0; }\n",
	}
}

// metrics serves /metrics as text, OpenMetrics or protobuf, whichever the scraper prefers, plain or compressed.
// OpenMetrics has no _created lines, which would be one more series for each counter and histogram.
func (s *Server) metrics() http.Handler {
	return promhttp.InstrumentMetricHandler(s.options.Registry, s.printed(promhttp.HandlerFor(s.options.Registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true,
		ErrorLog:          slog.NewLogLogger(s.options.Log.Handler(), slog.LevelError),
	})))
}

// printed renders a response before writing it. Rendering does not wait for clients, so a client that does not read
// delays no other.
func (s *Server) printed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		end := time.Now().Add(writeTimeout)
		s.limit.hand(w, r, s.press.render(h, r), end)
	})
}

func (s *Server) healthy(w http.ResponseWriter, _ *http.Request) {
	if s.options.Healthy != nil {
		if err := s.options.Healthy(); err != nil {
			writeText(w, http.StatusServiceUnavailable, "replayd is not healthy: "+err.Error())
			return
		}
	}
	writeText(w, http.StatusOK, "replayd is healthy.")
}

// shown answers with the text of a page.
func (s *Server) shown(kind string, page func() ([]byte, error)) http.Handler {
	return s.printed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text, err := page()
		if err != nil {
			writeText(w, http.StatusInternalServerError, err.Error())
			return
		}
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(text)
	}))
}

func (s *Server) onceReady(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.ready.Load() {
			writeText(w, http.StatusServiceUnavailable, "replayd is not ready.")
			return
		}
		h.ServeHTTP(w, r)
	})
}

const (
	plain  = "text/plain; charset=utf-8"
	markup = "text/html; charset=utf-8"
)

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", plain)
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}
