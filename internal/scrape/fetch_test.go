package scrape

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	commoncfg "github.com/prometheus/common/config"

	"replayd/test/outside"
)

// fetcher returns a fetcher with the default options after change.
func fetcher(t *testing.T, change func(o *FetchOptions)) *Fetcher {
	t.Helper()
	o := FetchOptions{HTTP: commoncfg.DefaultHTTPClientConfig, UserAgent: "replayd/test"}
	if change != nil {
		change(&o)
	}
	f, err := NewFetcher(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func served(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// TestGetFromClientGolang fetches the same registry in both formats.
func TestGetFromClientGolang(t *testing.T) {
	registry := prometheus.NewRegistry()
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "h_seconds", Help: "Of it.", Buckets: []float64{0.5, 2}}, []string{"engine"})
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "c_total", Help: "Of it."})
	registry.MustRegister(h, c)
	c.Add(3)
	for _, v := range []float64{0.3, 1, 1.5, 9} {
		h.WithLabelValues("0").Observe(v)
	}
	page := promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
	lines := []string{`c_total{} 3`, `h_seconds_bucket{engine="0", le="+Inf"} 4`, `h_seconds_bucket{engine="0", le="0.5"} 1`, `h_seconds_bucket{engine="0", le="2.0"} 3`, `h_seconds_count{engine="0"} 4`, `h_seconds_sum{engine="0"} 11.8`}
	for _, f := range []struct{ accept, contentType string }{
		{"application/openmetrics-text;version=1.0.0", "application/openmetrics-text"},
		{accept, "text/plain"},
	} {
		var agent, encoding, got string
		s := served(t, func(w http.ResponseWriter, r *http.Request) {
			if agent = r.UserAgent(); r.Header.Get("Accept") != accept {
				t.Errorf("want Accept %q, got %q", accept, r.Header.Get("Accept"))
			}
			r.Header.Set("Accept", f.accept)
			page.ServeHTTP(w, r)
			encoding, got = w.Header().Get("Content-Encoding"), w.Header().Get("Content-Type")
		})
		p, err := fetcher(t, nil).Get(t.Context(), s.URL+"/metrics", anyName)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(lines, written(p)); diff != "" {
			t.Errorf("%s: - want, + got:\n%s", f.accept, diff)
		}
		if agent != "replayd/test" || encoding != "gzip" || !strings.HasPrefix(got, f.contentType) {
			t.Errorf("want gzip of %s for replayd/test, got %q of %q for %q", f.contentType, encoding, got, agent)
		}
	}
}

func TestGetKeepsItsConnection(t *testing.T) {
	var opened atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "a 1") }))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	s.Start()
	f := fetcher(t, nil)
	for range 5 {
		if _, err := f.Get(t.Context(), s.URL, anyName); err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
	s.Close()
	if n := opened.Load(); n > 4 { // net/http gives a connection up where its goroutine did not run for 50 ms
		t.Errorf("want connections kept, got %d for five pages", n)
	}
}

// hijacked answers with these bytes, and ends the connection.
func hijacked(t *testing.T, answer string) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(c, answer)
		_ = c.Close()
	}
}

// TestGetFails covers faulty servers. BASE in an expected error stands for the server's address.
func TestGetFails(t *testing.T) {
	write := func(contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = io.WriteString(w, body) // the client may close the connection early
		}
	}
	zipped := func(n int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", text004)
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for line := []byte(strings.Repeat("# 0123456789\n", 80_000)); n > 0; n-- {
				if _, err := z.Write(line); err != nil {
					return
				}
			}
			_ = z.Close()
		}
	}
	for _, c := range []struct {
		name   string
		h      http.HandlerFunc
		reason Reason
		kept   int
		err    string // prefix of the error
	}{
		{
			"not found", func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "no \"such\" page\n"+strings.Repeat("x", 500), http.StatusNotFound)
			}, ReasonHTTP, 0,
			`BASE/m: want status 200, got "404 Not Found": "no \"such\" page\n` + strings.Repeat("x", 105) + `…"`,
		},
		{"a gzipped refusal", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(http.StatusServiceUnavailable)
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, "loading")
			_ = z.Close()
		}, ReasonHTTP, 0, `BASE/m: want status 200, got "503 Service Unavailable": "loading"`},
		{"no content", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, ReasonHTTP, 0, `BASE/m: want status 200, got "204 No Content": ""`},
		{
			"a key repeated", func(w http.ResponseWriter, r *http.Request) {
				http.Error(w, "bad "+r.Header.Get("Authorization")+" "+r.Header.Get("X-Key"), http.StatusUnauthorized)
			}, ReasonHTTP, 0,
			`BASE/m: want status 200, got "401 Unauthorized": "bad Bearer <secret> <secret>"`,
		},
		{
			"redirects for ever", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/m", http.StatusFound) }, ReasonHTTP, 0,
			"BASE/m: want status 200, got 302 Found: stopped after 10 redirects",
		},
		{"JSON", write("application/json", `[{"iter": 1}]`), ReasonContentType, 0, `BASE/m: want a metrics page as text, got content type "application/json" and a body that begins "[{\"iter\": 1}]"`},
		{"JSON that says text", write("text/plain", `{"a": 1}`), ReasonContentType, 0, "BASE/m: want a metrics page as text, got content type"},
		{"text that says protobuf", write(protobuf, "a 1\n"), ReasonContentType, 0, "BASE/m: want a metrics page as text, got content type"},
		{"another encoding", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "br") }, ReasonContentType, 0, `BASE/m: want Content-Encoding gzip or none, got "br"`},
		{"gzip that is none", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(w, strings.Repeat("a 1\n", 10))
		}, ReasonContentType, 0, "BASE/m: want gzip as Content-Encoding says: gzip: invalid header"},
		{"50 MB", func(w http.ResponseWriter, _ *http.Request) {
			for line := strings.Repeat("a 1\n", 1<<18); ; { // until the client closes the connection
				if _, err := io.WriteString(w, line); err != nil {
					return
				}
			}
		}, ReasonTooLarge, 0, "BASE/m: want a page of at most 16777216 bytes, got more"},
		{"a gzip bomb", zipped(1000), ReasonTooLarge, 0, "BASE/m: want a page of at most 16777216 bytes, got more"},
		{"gzip of nothing for ever", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			// An empty stored block (RFC 1951, 3.2.4), repeated.
			_, _ = w.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255})
			for blocks := []byte(strings.Repeat("\x00\x00\x00\xff\xff", 1<<18)); ; {
				if _, err := w.Write(blocks); err != nil {
					return
				}
			}
		}, ReasonTooLarge, 0, "BASE/m: want a page of at most 16777216 bytes, got more"},
		{"mid-line, without a length", hijacked(t, "HTTP/1.1 200 OK\r\n\r\na 1\nb 2\nc 3"), ReasonParse, 2, `BASE/m: line 3: the page ends in mid-line, want a line end, got "c 3"`},
		{"mid-line, with a length", hijacked(t, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\na 1\nb 2\nc 3"), ReasonConnect, 0, "BASE/m: the page breaks off after 11 bytes: unexpected EOF"},
		{"mid-line, in chunks", hijacked(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\na 1\n\r\n"), ReasonConnect, 0, "BASE/m: the page breaks off after 4 bytes: unexpected EOF"},
		{"nothing", hijacked(t, ""), ReasonConnect, 0, "BASE/m: EOF"},
		{"not HTTP", hijacked(t, "SSH-2.0-"+strings.Repeat("x", 2000)+"\r\n"), ReasonConnect, 0, "BASE/m: net/http: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := served(t, c.h)
			f := fetcher(t, func(o *FetchOptions) {
				o.HTTP.Authorization = &commoncfg.Authorization{Type: "Bearer", Credentials: "sesame-1"}
				o.HTTP.HTTPHeaders = &commoncfg.Headers{Headers: map[string]commoncfg.Header{"X-Key": {Secrets: []commoncfg.Secret{"sesame-2"}}}}
			})
			p, err := f.Get(t.Context(), s.URL+"/m", anyName)
			if want := strings.ReplaceAll(c.err, "BASE", s.URL); reasonOf(t, err) != c.reason || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("want %s: %s\ngot  %s: %v", c.reason, want, reasonOf(t, err), err)
			}
			if len(written(p)) != c.kept {
				t.Errorf("want %d samples, got %v", c.kept, written(p))
			}
			if len(err.Error()) > 700 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestGetRedirects(t *testing.T) {
	s := served(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/new", http.StatusMovedPermanently)
			return
		}
		fmt.Fprintln(w, "a 1")
	})
	if p, err := fetcher(t, nil).Get(t.Context(), s.URL+"/old", anyName); err != nil || len(p.Samples) != 1 {
		t.Errorf("followed: %v", err)
	}
	_, err := fetcher(t, func(o *FetchOptions) { o.HTTP.FollowRedirects = false }).Get(t.Context(), s.URL+"/old", anyName)
	if want := s.URL + `/old: want status 200, got "301 Moved Permanently", a redirect to "/new"`; reasonOf(t, err) != ReasonHTTP || err.Error() != want {
		t.Errorf("want %s, got %v", want, err)
	}
}

// TestGetEnds covers a server that hangs before or within its response, and a context that ends.
func TestGetEnds(t *testing.T) {
	for _, begun := range []bool{false, true} {
		waiting := make(chan struct{})
		s := served(t, func(w http.ResponseWriter, r *http.Request) {
			if begun {
				fmt.Fprintln(w, "a 1")
				w.(http.Flusher).Flush()
			}
			waiting <- struct{}{}
			<-r.Context().Done()
		})
		f := fetcher(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-waiting
			cancel()
		}()
		if p, err := f.Get(ctx, s.URL, anyName); err != context.Canceled || p != nil { //nolint:errorlint // as it is, not wrapped
			t.Errorf("cancelled: want the plain error and no page, got %v", err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
		go func() { <-waiting }()
		p, err := f.Get(ctx, s.URL, anyName)
		if reasonOf(t, err) != ReasonTimeout || !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), s.URL+": no whole page within the time given: ") || p != nil {
			t.Errorf("past the deadline: got %v", err)
		}
		cancel()
	}
}

func TestGetConnect(t *testing.T) {
	address := outside.Address(t) // no server listens there
	for _, c := range []struct{ url, want string }{
		{"http://user:sesame@" + address + "/m", "http://xxxxx@" + address + "/m: dial tcp " + address + ": connect: connection refused"},
		{"ftp://user:sesame@x/m", `want an http or https URL of a metrics page, got "ftp://xxxxx@x/m"`},
		{"http://user:sesame@\x00", `want an http or https URL of a metrics page, got "one that cannot be read"`},
	} {
		if _, err := fetcher(t, nil).Get(t.Context(), c.url, anyName); reasonOf(t, err) != ReasonConnect || err.Error() != c.want {
			t.Errorf("want %s, got %v", c.want, err)
		}
	}
}

// TestGetAtAnAddress fetches from two replicas behind one name that does not resolve.
func TestGetAtAnAddress(t *testing.T) {
	replica := func(n int) *httptest.Server {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "a{host=%q,name=%q} %d\n", r.Host, r.TLS.ServerName, n)
		}))
		s.Config.ErrorLog = log.New(io.Discard, "", 0) // the server logs the failed handshakes
		s.StartTLS()
		t.Cleanup(s.Close)
		return s
	}
	for n, s := range []*httptest.Server{replica(0), replica(1)} {
		f := fetcher(t, func(o *FetchOptions) {
			o.Address = s.Listener.Addr().String()
			o.HTTP.ProxyURL = commoncfg.URL{URL: &url.URL{Scheme: "http", Host: "127.0.0.1:1"}}
			ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
			o.HTTP.TLSConfig = commoncfg.TLSConfig{CA: string(ca), MinVersion: commoncfg.TLSVersion(tls.VersionTLS12)}
		})
		p, err := f.Get(t.Context(), "https://example.com:8443/metrics", anyName) // a name of httptest's certificate
		if err != nil {
			t.Fatal(err)
		}
		want := []string{fmt.Sprintf(`a{host="example.com:8443", name="example.com"} %d`, n)}
		if diff := cmp.Diff(want, written(p)); diff != "" {
			t.Error(diff)
		}
		if _, err := f.Get(t.Context(), "https://elsewhere.test/metrics", anyName); reasonOf(t, err) != ReasonConnect || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("want the wrong name refused, got %v", err)
		}
	}
	for _, address := range []string{"localhost:1", "127.0.0.1", ":1"} {
		if _, err := NewFetcher(FetchOptions{Address: address}); err == nil || err.Error() != fmt.Sprintf("address: want ip:port, got %q", address) {
			t.Errorf("%s: got %v", address, err)
		}
	}
}

func TestGetProcessStartHeader(t *testing.T) {
	for _, c := range []struct {
		header, body string
		want         int64 // 0: none
	}{
		{"18515629934", "a 1\n", 18_515}, // as llama-server 0.7.0 sends it
		{"1700000000", "process_start_time_seconds 1.6e9\n", 1_600_000_000},
		{"soon", "a 1\n", 0},
		{"", "a 1\n", 0},
	} {
		s := served(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Process-Start-Time-Unix", c.header)
			out := bufio.NewWriter(w)
			defer out.Flush()
			fmt.Fprint(out, c.body)
		})
		p, err := fetcher(t, nil).Get(t.Context(), s.URL, anyName)
		if err != nil {
			t.Fatal(err)
		}
		if c.want == 0 != p.Start.IsZero() || c.want != 0 && p.Start.Unix() != c.want {
			t.Errorf("%q, %q: want %d, got %v", c.header, c.body, c.want, p.Start)
		}
	}
}

// Headers from http_headers are not sent to another address.
func TestGetFollowsToTheSameAddressAlone(t *testing.T) {
	var leaked atomic.Bool
	other := served(t, func(_ http.ResponseWriter, r *http.Request) { leaked.Store(r.Header.Get("X-Api-Key") != "") })
	s := served(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, other.URL, http.StatusFound)
		case "/near":
			http.Redirect(w, r, "/metrics", http.StatusFound)
		default:
			fmt.Fprintln(w, "a 1")
		}
	})
	get := func(path string) error {
		_, err := fetcher(t, func(o *FetchOptions) {
			o.HTTP.HTTPHeaders = &commoncfg.Headers{Headers: map[string]commoncfg.Header{"X-Api-Key": {Values: []string{"s3cret"}}}}
		}).Get(t.Context(), s.URL+path, anyName)
		return err
	}
	if err := get("/near"); err != nil {
		t.Errorf("want the page at the same address, got %v", err)
	}
	if err := get("/away"); err == nil || !strings.Contains(err.Error(), "another address is not followed") || leaked.Load() {
		t.Errorf("want it not followed, got %v, and the key there: %v", err, leaked.Load())
	}
}
