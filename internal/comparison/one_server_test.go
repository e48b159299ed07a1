package comparison

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"

	"replayd/internal/openai"
)

// Two spellings of one server are one server, and so are two that cannot be told apart.
func TestOneServerOrTwo(t *testing.T) {
	resolve := func(_ context.Context, host string) ([]netip.Addr, error) {
		all := map[string]string{"a": "192.0.2.1", "alias": "192.0.2.1", "b": "192.0.2.2", "me": "127.0.0.1"}
		if all[host] == "" {
			return nil, errors.New("no such host")
		}
		return []netip.Addr{netip.MustParseAddr(all[host])}, nil
	}
	own := "192.0.2.99" // unless this machine has another one
	if all, err := net.InterfaceAddrs(); err == nil {
		for _, one := range all {
			if ip, ok := one.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() {
				own = ip.IP.String()
			}
		}
	}
	for _, c := range []struct {
		baseline, candidate string
		one                 bool
	}{
		{"http://localhost:8000", "http://127.0.0.1:8000/", true},
		{"http://localhost:8000", "localhost:8000/v1", true},
		{"http://LocalHost:8000", "http://localhost.:8000", true},
		{"http://h", "http://h:80/", true},
		{"https://h", "https://H:443/v1/chat/completions", true},
		{"http://127.0.0.1:8000", "http://[::1]:8000", true},
		{"http://127.0.0.1:8000", "http://[::ffff:127.0.0.1]:8000", true},
		{"http://127.0.0.1:8000", "http://127.8.0.1:8000", true},
		{"http://127.0.0.1:8000", "http://0.0.0.0:8000", true},
		{"http://sim.localhost:8000", "http://me:8000", true},
		{"http://[2001:db8:0::1]:8000", "http://[2001:db8::1]:8000", true},
		{"http://a:8000", "http://192.0.2.1:8000", true},
		{"http://a:8000", "http://alias:8000", true},
		{"http://a:8000/stable", "http://a:8000/canary", true}, // a path can lead to the same engine
		{"http://a:8000", "http://missing:8000", true},         // it may be an alias
		{"http://a:8000", "http://b:8000", false},
		{"http://192.0.2.1:8000", "http://192.0.2.2:8000", false},
		{"http://127.0.0.1:8000", "http://127.0.0.1:8001", false},
		{"http://a", "https://alias", true}, // the usual ports of one server
		{"http://a:8000", "https://a:8443", false},
	} {
		for _, sides := range [][2]string{{c.baseline, c.candidate}, {c.candidate, c.baseline}} {
			if got := mayBeOne(t.Context(), sides, resolve); got != c.one {
				t.Errorf("%s: one server: %t, want %t", sides, got, c.one)
			}
		}
	}
	if own != "192.0.2.99" && !mayBeOne(t.Context(), [2]string{"http://localhost:1", "http://" + own + ":1"}, nil) {
		t.Errorf("%s is this machine, too", own)
	}
	if mayBeOne(t.Context(), [2]string{"http://a:1", "http://b:1"}, nil) {
		t.Error("want two names that nothing resolves taken as two servers")
	}
}

// mayBeOne looks at two URLs.
func mayBeOne(ctx context.Context, urls [2]string, resolve func(context.Context, string) ([]netip.Addr, error)) bool {
	var names, ports [2]string
	for i, url := range urls {
		names[i], ports[i] = openai.HostPort(url)
	}
	return MayBeOneServer(ctx, names, ports, resolve)
}
