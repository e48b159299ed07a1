package openai

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/config"

	"replayd/internal/fault"
	"replayd/internal/measure"
	"replayd/internal/openai/internal/wire"
	"replayd/internal/scarce"
)

// connect opens a connection to a pod: name, TCP (both families raced as RFC 8305 says, by net.Dialer) and TLS, within
// Timeouts.Connect and before total, where they are set.
func (c *Client) connect(ctx context.Context, to *pod, total time.Time) (*wire.Conn, *failure) {
	limit, late := total, measure.TimeoutTotal
	if d := c.target.Timeouts.Connect; d > 0 {
		if own := time.Now().Add(d); limit.IsZero() || own.Before(limit) {
			limit, late = own, measure.TimeoutConnect
		}
	}
	bounded := ctx
	if !limit.IsZero() {
		var cancel context.CancelFunc
		bounded, cancel = context.WithDeadline(ctx, limit)
		defer cancel()
	}
	made, err := c.open(bounded, to)
	if err == nil {
		c.connected.Store(true)
		return made, nil
	}
	var slow net.Error
	switch {
	case ctx.Err() != nil:
		return nil, aborted(ctx)
	case scarce.Met(err): // the server has no part in it
		return nil, unsent(err)
	case bounded.Err() != nil:
		return nil, failed(late, "connecting took longer than allowed: %v", err)
	case errors.As(err, &slow) && slow.Timeout(): // the kernel or the resolver gave up first
		return nil, failed(measure.TimeoutConnect, "%v", err)
	}
	if c.IgnoredProxy() {
		err = fmt.Errorf("%w (the proxy that the environment names is not used)", err)
	}
	return nil, failed(measure.ConnectFailed, "%v", err)
}

// Connected reports whether a connection was ever made, TLS handshake included.
func (c *Client) Connected() bool { return c.connected.Load() }

func (c *Client) open(ctx context.Context, to *pod) (*wire.Conn, error) {
	if to == nil { // the name was not found yet
		return nil, cmp.Or(c.pods.Load().err, errors.New("no pod is known yet"))
	}
	raw, err := c.dial(ctx, "tcp", to.address)
	if err != nil {
		return nil, err
	}
	made := wire.NewConn(raw, c.clock)
	if c.base.secure {
		cfg, err := c.tlsConfig(ctx)
		if err != nil {
			made.Cut()
			return nil, err
		}
		if err := made.StartTLS(ctx, cfg); err != nil {
			made.Cut()
			if strings.HasSuffix(err.Error(), "no application protocol") {
				err = fmt.Errorf("want HTTP/1.1, the server speaks none, perhaps HTTP/2 only: %w", err)
			}
			return nil, fmt.Errorf("TLS with %s: %w", to.address, err)
		}
	}
	return made, nil
}

// tlsFiles are the certificates in files as they were read last.
type tlsFiles struct {
	good   atomic.Pointer[tls.Config] // nil: none were
	fault  atomic.Pointer[error]      // of the latest try; nil: none
	failed atomic.Int64               // tries
}

// TLSFiles returns how many tries to use the files of TLS have failed, and why the latest one did.
func (c *Client) TLSFiles() (failed int64, fault error) {
	if err := c.tls.fault.Load(); err != nil {
		fault = *err
	}
	return c.tls.failed.Load(), fault
}

// tlsConfig reads the certificates from their files. If they cannot be used, as in the middle of a rotation, it returns the last ones
// that could: the server did not fail.
func (c *Client) tlsConfig(ctx context.Context) (*tls.Config, error) {
	own := c.target.HTTP.TLSConfig
	cfg, err := config.NewTLSConfigWithContext(ctx, &own)
	if err == nil && cfg.GetClientCertificate != nil { // it reads the files again, at the handshake
		var pair *tls.Certificate
		pair, err = cfg.GetClientCertificate(nil)
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair, nil }
	}
	if err != nil {
		err = fault.At("http.tls_config", err)
		c.tls.failed.Add(1)
		c.tls.fault.Store(&err)
		if last := c.tls.good.Load(); last != nil {
			return last, nil
		}
		return nil, err
	}
	if cfg.ServerName == "" {
		cfg.ServerName = c.base.name
	}
	cfg.NextProtos = []string{"http/1.1"}
	c.tls.fault.Store(nil)
	c.tls.good.Store(cfg)
	return cfg, nil
}

// Renew has no connection that is open now used for another request: behind one address there may be another server since. Requests in flight
// go on.
func (c *Client) Renew() {
	for _, p := range c.pods.Load().all {
		p.pool.Renew(time.Now())
	}
}

// Warm opens connections until there are so many of each pod, with those of requests, the idle ones not older than Idle: of the first
// one total[0], and so on. A request takes a connection from the pool before one is dialed, so that none is dialed at a due instant. A later
// call adds the connections that are missing. A pod that refuses one is asked for no further one, for 10 s, as is a pod that ended one
// before its first request; the others get theirs. The error is that of the first pod that refused.
func (c *Client) Warm(ctx context.Context, total ...int) error {
	const together = 16 // concurrent handshakes: they hide the round-trip time of a distant server and do not flood it
	places := make(chan struct{}, together)
	now := c.pods.Load().all
	now = now[:min(len(now), len(total))]
	faults := make([]error, len(now))
	var group sync.WaitGroup
	for i, p := range now {
		group.Go(func() { faults[i] = c.warm(ctx, p, p.pool.Reserve(total[i], time.Now(), c.target.Idle), places) })
	}
	group.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, err := range faults {
		if err != nil {
			return fmt.Errorf("warm up %s: %s", c.base, c.Redact(err.Error()))
		}
	}
	return nil
}

// warm opens n connections to a pod, or no more after the first that fails: the others would fail, too. Each takes a place meanwhile.
func (c *Client) warm(ctx context.Context, p *pod, n int, places chan struct{}) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var group sync.WaitGroup
	for range n {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			if ctx.Err() != nil {
				p.pool.Release(false, time.Now())
				return
			}
			made, f := c.connect(ctx, p, time.Time{})
			if f == nil {
				p.pool.Add(made)
				return
			}
			p.pool.Release(ctx.Err() == nil, time.Now())
			stop(errors.New(f.text)) // the first one counts, or the caller's
		})
	}
	group.Wait()
	return context.Cause(ctx)
}
