package openai

import (
	"context"
	"net"
	"net/url"
	"sync"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// A dialer remembers which of a name's addresses answered while another did not. Otherwise each connection would wait for the dead
// one, since net.Dialer begins with the first. A name with no dead address is looked up for each connection.
type dialer struct {
	net.Dialer
	mu   sync.Mutex
	good map[string]goodAddress // by host:port as configured
}

type goodAddress struct {
	address string
	until   time.Time
}

const (
	slowDial = 250 * time.Millisecond // net.Dialer waits 300 ms for IPv6 before it tries IPv4
	goodFor  = time.Minute
	goodWait = time.Second // for the remembered address
)

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d.mu.Lock()
	known := d.good[address]
	d.mu.Unlock()
	if time.Now().Before(known.until) {
		soon, cancel := context.WithTimeout(ctx, goodWait)
		conn, err := d.DialContext(soon, network, known.address)
		cancel()
		if err == nil {
			return conn, nil
		}
	}
	start := time.Now()
	conn, err := d.DialContext(ctx, network, address)
	d.mu.Lock()
	defer d.mu.Unlock()
	if delete(d.good, address); err == nil && time.Since(start) > slowDial {
		if d.good == nil {
			d.good = map[string]goodAddress{}
		}
		d.good[address] = goodAddress{conn.RemoteAddr().String(), time.Now().Add(goodFor)}
	}
	return conn, err
}

// IgnoredProxy reports whether the environment (HTTP_PROXY and its like) names a proxy for the target. Requests do not use it, because
// its time would count as the target's.
func (c *Client) IgnoredProxy() bool {
	at, err := url.Parse(c.base.site())
	if err != nil {
		return false
	}
	proxy, err := httpproxy.FromEnvironment().ProxyFunc()(at)
	return proxy != nil || err != nil
}
