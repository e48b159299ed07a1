package openai

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"replayd/internal/measure"
	"replayd/test/wiretest"
)

// The address that answered after a wait for another is dialed at once, until it does not answer any more.
func TestDialerRemembers(t *testing.T) {
	address := wiretest.Listen(t, "tcp4", func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) })
	var dialed atomic.Pointer[string]
	var refuse atomic.Bool
	d := &dialer{}
	d.ControlContext = func(_ context.Context, _, to string, _ syscall.RawConn) error {
		dialed.Store(&to)
		if refuse.Swap(false) {
			return errors.New("dead")
		}
		return nil
	}
	dial := func() {
		t.Helper()
		c, err := d.dial(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
	dial()
	if len(d.good) != 0 {
		t.Errorf("want nothing remembered that answered at once, got %v", d.good)
	}
	d.good = map[string]goodAddress{"name:1": {address, time.Now().Add(goodFor)}}
	c, err := d.dial(t.Context(), "tcp", "name:1") // a name that nothing resolves
	if err != nil || *dialed.Load() != address {
		t.Fatalf("want the remembered address dialed, got %v", err)
	}
	_ = c.Close()
	d.good[address] = goodAddress{address, time.Now().Add(goodFor)}
	refuse.Store(true)
	dial()
	if _, there := d.good[address]; there {
		t.Error("want an address forgotten that does not answer any more")
	}
}

// A proxy that the environment names is not used, and a failed connection says so.
func TestIgnoredProxy(t *testing.T) {
	for name, c := range map[string]struct {
		url, http, https, no string
		ignored              bool
	}{
		"none":              {"http://engine.example", "", "", "", false},
		"for http":          {"http://engine.example", "http://proxy:3128", "", "", true},
		"for https only":    {"http://engine.example", "", "http://proxy:3128", "", false},
		"https":             {"https://engine.example", "", "http://proxy:3128", "", true},
		"exempt":            {"http://engine.example", "http://proxy:3128", "", "engine.example", false},
		"exempt domain":     {"http://engine.example", "http://proxy:3128", "", ".example", false},
		"loopback, as curl": {"http://127.0.0.1:1", "http://proxy:3128", "", "", false},
	} {
		t.Setenv("HTTP_PROXY", c.http)
		t.Setenv("HTTPS_PROXY", c.https)
		t.Setenv("NO_PROXY", c.no)
		for _, small := range []string{"http_proxy", "https_proxy", "no_proxy"} {
			t.Setenv(small, "")
		}
		client := newClient(t, Target{Options: Options{URL: c.url}, Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("refused")
		}})
		var req measure.Request
		do(t, client.Lane(), &req)
		if got := strings.Contains(string(req.Error), "the environment names is not used"); got != c.ignored || client.IgnoredProxy() != c.ignored {
			t.Errorf("%s: want it told: %v; got %q", name, c.ignored, req.Error)
		}
	}
}
