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
	"slices"
	"strconv"
	"strings"
	"time"

	commoncfg "github.com/prometheus/common/config"

	"replayd/internal/fault"
	"replayd/internal/secret"
)

// accept asks for text. It does not name OpenMetrics: Python's client serves
// OpenMetrics to any client that names it, whatever the q values, and since 0.22 it then writes sglang_x where the
// plain text has sglang:x (prometheus_client/exposition.py; seen with SGLang 0.5.23).
const accept = "text/plain;version=0.0.4,*/*;q=0.3"

// FetchOptions configures a Fetcher.
type FetchOptions struct {
	HTTP commoncfg.HTTPClientConfig // credentials, TLS, proxy, redirects
	// Address, as ip:port, is the address of every connection, whatever the URL's host is. The Host header and the name
	// that TLS verifies are still the URL's. The proxy is not used. Empty: connect to the URL's host.
	Address   string
	Reconnect bool   // open a new connection for each request
	UserAgent string // empty: Go's default
	// Hidden returns further secrets that no text of an answer may show, such as the key of the target's requests. nil: none.
	Hidden func() secret.Set
	Dial   Dialer // nil: net.Dialer
}

// maxError bounds the text of an error in bytes.
const maxError = 1 << 10

// A Dialer opens connections, as net.Dialer's DialContext does.
type Dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// A Fetcher gets metrics pages over HTTP and keeps its connections. It is safe for concurrent use.
type Fetcher struct {
	client *http.Client
	own    []string // secrets of the options that are in no request header
	more   func() secret.Set
}

// NewFetcher returns a fetcher. It reads the files that the options name and fails if it cannot read one.
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
		if o.HTTP.OAuth2 != nil { // the OAuth2 token would be requested from o.Address too
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
	if _, err := commoncfg.NewTLSConfig(&o.HTTP.TLSConfig); err != nil {
		return nil, fault.At("http.tls_config", err)
	}
	client, err := commoncfg.NewClientFromConfig(o.HTTP, "scrape", options...)
	if err != nil {
		return nil, fault.At("http", err)
	}
	follow := client.CheckRedirect
	client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		// A redirect would carry the configured http_headers, which may hold keys.
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
	return &Fetcher{client: client, own: secret.OfClient(o.HTTP), more: o.Hidden}, nil
}

// Close closes the idle connections.
func (f *Fetcher) Close() { f.client.CloseIdleConnections() }

// Get fetches and parses a page; Parse documents which samples are kept and which errors return a page. If ctx is
// cancelled, Get returns ctx.Err() unwrapped. Any other error is an *Error that begins with the URL, without user and
// query, and has passed the door for texts from outside, as Page.Text does. If the connection breaks, the page is discarded, because its last line may be
// incomplete.
func (f *Fetcher) Get(ctx context.Context, page string, wanted func(name string) bool) (*Page, error) {
	u, err := url.Parse(page)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errorOf(ReasonConnect, "want an http or https URL of a metrics page, got %q", clip(secret.ShownURL(u), 200))
	}
	sent := secret.NewSent(f.own)
	p, err := f.get(sent.Watch(ctx), u, wanted)
	hidden := sent.Set()
	if f.more != nil {
		hidden = sent.Set(f.more())
	}
	if p != nil {
		p.hidden = hidden
	}
	if err == nil {
		return p, nil
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{ReasonConnect, err}
		if text := err.Error(); len(text) > 400 { // the error of net/http quotes an answer that is not HTTP in full
			e.Err = errors.New(clip(text, 400))
		}
	}
	if timeout, ok := errors.AsType[net.Error](err); ctx.Err() != nil || ok && timeout.Timeout() {
		e = &Error{ReasonTimeout, fmt.Errorf("no whole page within the time given: %w", err)}
		p = nil
	}
	return p, &Error{e.Reason, hidden.Error(fmt.Errorf("%s: %w", secret.ShownURL(u), e.Err), maxError)}
}

func (f *Fetcher) get(ctx context.Context, u *url.URL, wanted func(name string) bool) (*Page, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("Accept-Encoding", "gzip") // prometheus/common disables transparent compression
	resp, err := f.client.Do(req)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err // Get adds the URL to the error
		}
		if resp != nil { // the response to the last redirect
			return nil, errorOf(ReasonHTTP, "want status 200, got %s: %w", clip(resp.Status, 80), err)
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
	if len(body) > 0 && hasProvenEnd(resp) && !beginsLikeNoPage(body) {
		body = append(body, '\n') // Prometheus takes a last line without a line end, too
	}
	p, err := Parse(body, resp.Header.Get("Content-Type"), wanted)
	if p != nil {
		p.stamp = stampOf(resp.Header, body)
	}
	if p != nil && p.Start.IsZero() {
		// llama.cpp has no process_start_time_seconds; it sends this header (tools/server/server-context.cpp). Despite
		// its name, the value is in microseconds of the monotonic clock, so it only tells processes apart.
		if us, err := strconv.ParseInt(resp.Header.Get("Process-Start-Time-Unix"), 10, 64); err == nil && us > 0 {
			p.Start = time.UnixMicro(us)
		}
	}
	return p, err
}

// hasProvenEnd reports whether the end of a body that was read without an error is proven: by its length, the last chunk, or the end of an HTTP/2 stream. A
// body that ends with its connection may be cut anywhere.
func hasProvenEnd(resp *http.Response) bool {
	return resp.ContentLength >= 0 || slices.Contains(resp.TransferEncoding, "chunked") || resp.ProtoMajor >= 2
}

func readBody(resp *http.Response) ([]byte, error) {
	from, err := unzipped(resp)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(from, maxBodyBytes+1))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok || len(body) > maxBodyBytes {
		return nil, errorOf(ReasonTooLarge, "want a page of at most %d bytes, got more", maxBodyBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("the page breaks off after %d bytes: %w", len(body), err)
	}
	return body, nil
}

// unzipped returns the body, decompressed if necessary. It bounds the compressed bytes, because gzip data can
// decompress to nothing without end. The caller bounds the decompressed bytes.
func unzipped(resp *http.Response) (io.Reader, error) {
	from := http.MaxBytesReader(nil, resp.Body, maxBodyBytes)
	switch encoding := resp.Header.Get("Content-Encoding"); strings.ToLower(encoding) {
	case "", "identity":
		return from, nil
	case "gzip", "x-gzip":
		r, err := gzip.NewReader(from)
		if errors.Is(err, gzip.ErrHeader) {
			return nil, errorOf(ReasonContentType, "want gzip as Content-Encoding says: %w", err)
		}
		if err != nil {
			return nil, fmt.Errorf("the gzipped page breaks off at its beginning: %w", err)
		}
		return r, nil
	default:
		return nil, errorOf(ReasonContentType, "want Content-Encoding gzip or none, got %q", clip(encoding, 80))
	}
}

// refusal returns the error for a status other than 200.
func refusal(resp *http.Response) error {
	if to := resp.Header.Get("Location"); to != "" {
		return errorOf(ReasonHTTP, "want status 200, got %q, a redirect to %q", clip(resp.Status, 80), clip(to, 120))
	}
	var said []byte
	if from, err := unzipped(resp); err == nil {
		said, _ = io.ReadAll(io.LimitReader(from, 4<<10)) // a partial body is enough for the error
	}
	return errorOf(ReasonHTTP, "want status 200, got %q: %q", clip(resp.Status, 80), clip(strings.TrimSpace(string(said)), 120))
}
