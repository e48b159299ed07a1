package scrape

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	commoncfg "github.com/prometheus/common/config"

	"replayd/internal/secret"
)

// accept asks for protobuf first, which alone has native histograms. OpenMetrics is not asked for: Python's client gives it to
// whoever names it, whatever the q values say, and since 0.22 it then writes sglang_x where the plain text has sglang:x
// (prometheus_client/exposition.py; seen of SGLang 0.5.23).
const accept = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6," +
	"text/plain;version=0.0.4;q=0.4,*/*;q=0.3"

// FetchOptions say how pages are fetched.
type FetchOptions struct {
	HTTP commoncfg.HTTPClientConfig // credentials, TLS, proxy, redirects
	// Address, as ip:port, is where every connection goes, whatever the URL's host is; the Host header and the name that TLS
	// checks stay the URL's. No proxy is used then. Empty: where the URL says.
	Address   string
	Reconnect bool   // no connection is kept
	UserAgent string // empty: Go's own
	Dial      Dialer // nil: TCP's
}

// A Dialer opens connections, as net.Dialer's DialContext does.
type Dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// A Fetcher gets metrics pages over HTTP and keeps its connections. It is safe for concurrent use.
type Fetcher struct {
	client *http.Client
	own    []string // secrets of its options that stand in no header of a request
}

// NewFetcher makes a fetcher. It reads the files that the options name, and fails where one cannot be read.
func NewFetcher(o FetchOptions) (*Fetcher, error) {
	var options []commoncfg.HTTPClientOption
	if o.UserAgent != "" {
		options = append(options, commoncfg.WithUserAgent(o.UserAgent))
	}
	if o.Reconnect {
		options = append(options, commoncfg.WithKeepAlivesDisabled())
	}
	if o.Address != "" {
		if _, err := netip.ParseAddrPort(o.Address); err != nil {
			return nil, fmt.Errorf("address: want ip:port, got %q", o.Address)
		}
		if o.HTTP.OAuth2 != nil { // its token would be asked for at that address too
			return nil, errors.New("address: want no oauth2 beside one address of several")
		}
		o.HTTP.ProxyConfig = commoncfg.ProxyConfig{}
		dial := o.Dial
		if dial == nil {
			dial = new(net.Dialer).DialContext
		}
		o.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) { return dial(ctx, network, o.Address) }
	}
	if o.Dial != nil {
		options = append(options, commoncfg.WithDialContextFunc(o.Dial))
	}
	client, err := commoncfg.NewClientFromConfig(o.HTTP, "scrape", options...)
	if err != nil {
		return nil, err
	}
	follow := client.CheckRedirect
	client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		// What http_headers holds would go with it, keys among them.
		if to, from := req.URL, via[0].URL; to.Scheme != from.Scheme || to.Host != from.Host {
			return fmt.Errorf("it leads to %s, and another address is not followed", secret.ShownURL(to))
		}
		if follow != nil {
			return follow(req, via)
		}
		if len(via) >= 10 {
			return errors.New("stopped after 10 redirects")
		}
		return nil
	}
	return &Fetcher{client: client, own: secretsOf(o.HTTP)}, nil
}

// Close closes the connections that no Get uses.
func (f *Fetcher) Close() { f.client.CloseIdleConnections() }

// Get fetches a page and reads it; Parse says what is kept and what comes with which error. A cancelled context gives its
// error as it is, everything else an *Error that begins with the URL, without user and query; no credential is in it. A page whose connection broke is
// not kept: nothing says that its last line is whole.
func (f *Fetcher) Get(ctx context.Context, page string, wanted func(name string) bool) (*Page, error) {
	u, err := url.Parse(page)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fault(ReasonConnect, "want an http or https URL of a metrics page, got %q", clip(secret.ShownURL(u), 200))
	}
	told := &told{secrets: f.own}
	p, err := f.get(told.watch(ctx), u, wanted)
	if err == nil {
		return p, nil
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{ReasonConnect, err}
		if text := err.Error(); len(text) > 400 { // an answer that is not HTTP, shown whole
			e.Err = errors.New(clip(text, 400))
		}
	}
	if timeout, ok := errors.AsType[net.Error](err); ctx.Err() != nil || ok && timeout.Timeout() {
		e = &Error{ReasonTimeout, fmt.Errorf("no whole page within the time given: %w", err)}
		p = nil
	}
	return p, &Error{e.Reason, told.without(fmt.Errorf("%s: %w", secret.ShownURL(u), e.Err))}
}

func (f *Fetcher) get(ctx context.Context, u *url.URL, wanted func(name string) bool) (*Page, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("Accept-Encoding", "gzip") // the transport of prometheus/common leaves compression to its user
	resp, err := f.client.Do(req)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err // the URL is said once, at the front
		}
		if resp != nil { // of the redirect that was one too many
			return nil, fault(ReasonHTTP, "want status 200, got %s: %w", clip(resp.Status, 80), err)
		}
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, refusal(resp)
	}
	body, err := readBody(resp)
	if err != nil {
		return nil, err
	}
	p, err := Parse(body, resp.Header.Get("Content-Type"), wanted)
	if p != nil && p.Start.IsZero() {
		// llama.cpp has no process_start_time_seconds, and writes this header instead (tools/server/server-context.cpp): in spite
		// of its name microseconds on the monotonic clock. It tells one process from the next.
		if us, err := strconv.ParseInt(resp.Header.Get("Process-Start-Time-Unix"), 10, 64); err == nil && us > 0 {
			p.Start = time.UnixMicro(us)
		}
	}
	return p, err
}

// readBody reads a body to its end, decompressed.
func readBody(resp *http.Response) ([]byte, error) {
	from, err := unzipped(resp)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(from, maxBodyBytes+1))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok || len(body) > maxBodyBytes {
		return nil, fault(ReasonTooLarge, "want a page of at most %d bytes, got more", maxBodyBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("the page breaks off after %d bytes: %w", len(body), err)
	}
	return body, nil
}

// unzipped is a body, decompressed where it has to be. What comes over the wire is bounded, for some gzip becomes nothing for
// ever; the caller bounds what it becomes.
func unzipped(resp *http.Response) (io.Reader, error) {
	from := http.MaxBytesReader(nil, resp.Body, maxBodyBytes)
	switch encoding := resp.Header.Get("Content-Encoding"); strings.ToLower(encoding) {
	case "", "identity":
		return from, nil
	case "gzip", "x-gzip":
		r, err := gzip.NewReader(from)
		if errors.Is(err, gzip.ErrHeader) {
			return nil, fault(ReasonContentType, "want gzip as Content-Encoding says: %w", err)
		}
		if err != nil {
			return nil, fmt.Errorf("the gzipped page breaks off at its beginning: %w", err)
		}
		return r, nil
	default:
		return nil, fault(ReasonContentType, "want Content-Encoding gzip or none, got %q", clip(encoding, 80))
	}
}

// refusal is the error for an answer that is not 200.
func refusal(resp *http.Response) error {
	if to := resp.Header.Get("Location"); to != "" {
		return fault(ReasonHTTP, "want status 200, got %q, a redirect to %q", clip(resp.Status, 80), clip(to, 120))
	}
	var said []byte
	if from, err := unzipped(resp); err == nil {
		said, _ = io.ReadAll(io.LimitReader(from, 4<<10)) // what came is enough to show
	}
	return fault(ReasonHTTP, "want status 200, got %q: %q", clip(resp.Status, 80), clip(strings.TrimSpace(string(said)), 120))
}
