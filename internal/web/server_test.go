package web

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/test/outside"
)

// registry returns a registry with one classic and native histogram, which has one value with an exemplar.
func registry(t *testing.T) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewRegistry()
	h := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "test_seconds", Help: "A test.", Buckets: []float64{1}, NativeHistogramBucketFactor: 1.1,
	})
	reg.MustRegister(h)
	h.(prometheus.ExemplarObserver).ObserveWithExemplar(0.5, prometheus.Labels{"request_id": "w/0/7"})
	return reg
}

// serve runs a server until the end of the test, where Run must return no error.
func serve(t *testing.T, o Options) *Server {
	t.Helper()
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s, err := Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("want a clean end, got %v", err)
		}
		if _, err := s.listener.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Error("the address is still bound")
		}
	})
	return s
}

// An answer is a response with its whole body.
type answer struct {
	code   int
	header http.Header
	secure bool
	body   string
}

func get(t *testing.T, url, accept string) answer {
	t.Helper()
	return getWith(t, http.DefaultClient, url, accept)
}

func getWith(t *testing.T, c *http.Client, url, accept string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, resp.TLS != nil, string(body)}
}

func TestHealthAndReadiness(t *testing.T) {
	s := serve(t, Options{Registry: registry(t), Version: "1.2.3"})
	check := func(path string, status int, text string) {
		t.Helper()
		if got := get(t, s.URL()+path, ""); got.code != status || !strings.Contains(got.body, text) {
			t.Errorf("%s: want %d with %q, got %d with\n%s", path, status, text, got.code, got.body)
		}
	}
	check("/-/healthy", 200, "replayd is healthy.\n")
	check("/-/ready", 503, "replayd is not ready.\n")
	check("/metrics", 503, "replayd is not ready.\n")
	s.Ready()
	check("/-/healthy", 200, "replayd is healthy.\n")
	check("/-/ready", 200, "replayd is ready.\n")
	check("/metrics", 200, "test_seconds_count 1\n")
	check("/", 200, "Version: 1.2.3")
	check("/", 200, `href="/metrics"`)
	check("/nowhere", 404, "404 page not found")
	check("/debug/pprof/", 404, "404 page not found")
	resp, err := http.Post(s.URL()+"/metrics", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST /metrics: want 405, got %s", resp.Status)
	}
}

func TestAddressInUse(t *testing.T) {
	s := serve(t, Options{})
	address := s.listener.Addr().String()
	_, err := Listen(Options{Listen: address, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
	if want := "web.listen: listen tcp " + address + ": bind: address already in use"; err == nil || err.Error() != want {
		t.Errorf("want %s, got %v", want, err)
	}
}

// A browser cannot open an unspecified address.
func TestURL(t *testing.T) {
	for listen, want := range map[string]string{"127.0.0.1:0": "http://127.0.0.1:", ":0": "http://127.0.0.1:", "localhost:0": "http://127.0.0.1:"} {
		if got := serve(t, Options{Listen: listen}).URL(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: want %s…, got %s", listen, want, got)
		}
	}
}

// A response in progress may finish when the server stops. The address is free then.
func TestStopLetsAnswersEnd(t *testing.T) {
	reg := prometheus.NewRegistry()
	scraped, stopped := make(chan struct{}), make(chan struct{})
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "slow", Help: "A slow one."}, func() float64 {
		close(scraped)
		<-stopped
		return 1
	}))
	s, err := Listen(Options{Listen: "127.0.0.1:0", Registry: reg, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s.Ready()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	go func() {
		<-scraped
		cancel()
		for { // Shutdown closes the listener before it waits for responses
			c, err := net.Dial("tcp", s.listener.Addr().String())
			if err != nil {
				break
			}
			_ = c.Close()
		}
		close(stopped)
	}()
	if got := get(t, s.URL()+"/metrics", ""); !strings.Contains(got.body, "slow 1\n") {
		t.Errorf("got %s", got.body)
	}
	if err := <-ended; err != nil {
		t.Errorf("want a clean end, got %v", err)
	}
}

// A failing listener ends Run with an error.
func TestListenerFails(t *testing.T) {
	s, err := Listen(Options{Listen: "127.0.0.1:0", Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.listener.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), outside.Patience)
	defer cancel()
	if err := s.Run(ctx); !errors.Is(err, net.ErrClosed) || !strings.HasPrefix(err.Error(), "web: ") {
		t.Errorf("want web: … use of closed network connection, got %v", err)
	}
}
