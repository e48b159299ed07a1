package openai

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/prometheus/common/config"

	"replayd/internal/measure"
	"replayd/internal/openai/internal/wire"
)

// connect opens a connection: name, TCP (both families raced as RFC 8305 says, by net.Dialer) and TLS, within
// Timeouts.Connect and before total, where they are set.
func (c *Client) connect(ctx context.Context, total time.Time) (*wire.Conn, *failure) {
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
	made, err := c.open(bounded)
	if err == nil {
		c.connected.Store(true)
		return made, nil
	}
	var slow net.Error
	switch {
	case ctx.Err() != nil:
		return nil, aborted(ctx)
	case bounded.Err() != nil:
		return nil, failed(late, "connecting took longer than allowed: %v", err)
	case errors.As(err, &slow) && slow.Timeout(): // the kernel or the resolver gave up first
		return nil, failed(measure.TimeoutConnect, "%v", err)
	}
	return nil, failed(measure.ConnectFailed, "%v", err)
}

// Connected reports whether a connection was ever made, TLS handshake included.
func (c *Client) Connected() bool { return c.connected.Load() }

func (c *Client) open(ctx context.Context) (*wire.Conn, error) {
	raw, err := c.dial(ctx, "tcp", c.base.address)
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
			return nil, fmt.Errorf("TLS with %s: %w", c.base.address, err)
		}
	}
	return made, nil
}

// tlsConfig reads the certificates from their files.
func (c *Client) tlsConfig(ctx context.Context) (*tls.Config, error) {
	own := c.target.HTTP.TLSConfig
	cfg, err := config.NewTLSConfigWithContext(ctx, &own)
	if err != nil {
		return nil, fmt.Errorf("http.tls_config: %w", err)
	}
	if cfg.ServerName == "" {
		cfg.ServerName = c.base.name
	}
	cfg.NextProtos = []string{"http/1.1"}
	return cfg, nil
}

// Renew has no connection that is open now used for another request: behind one address there may be another server since. Requests in flight
// go on.
func (c *Client) Renew() { c.pool.Renew(time.Now()) }

// Warm opens connections until n of them are in the pool, none older than Idle. It returns then, or with the first error. A
// lane without a fresh connection takes one from the pool before it dials, so that no lane dials at a due instant. A later
// call adds the connections that are missing.
func (c *Client) Warm(ctx context.Context, n int) error {
	missing := n - c.pool.Fresh(time.Now(), c.target.Idle)
	if missing <= 0 {
		return nil
	}
	const together = 16 // concurrent handshakes: they hide the round-trip time of a distant server and do not flood it
	joint, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	tickets := make(chan struct{}, missing)
	for range missing {
		tickets <- struct{}{}
	}
	close(tickets)
	for range min(missing, together) {
		group.Go(func() {
			for range tickets {
				made, f := c.connect(joint, time.Time{})
				if f != nil {
					cancel(errors.New(f.text)) // the others would fail, too
					return
				}
				c.pool.Put(made)
			}
		})
	}
	group.Wait()
	switch err := context.Cause(joint); {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("warm up %s: %s", c.base, c.words(err.Error()))
	}
	return nil
}
