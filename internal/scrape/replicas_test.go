package scrape

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

func TestReplicaOf(t *testing.T) {
	for host, want := range map[string]string{
		"engine:8000": "engine:8000", "10.0.0.7:8000": "10.0.0.7:8000", "[2001:db8::1]:8000": "[2001:db8::1]:8000", "engine": "engine",
		"127.0.0.1:8000": "pod-0:8000", "localhost:8000": "pod-0:8000", "[::1]:8000": "pod-0:8000", "localhost": "pod-0", "[::1]": "pod-0",
	} {
		if got := replicaOf(host, "pod-0"); got != want {
			t.Errorf("%s: want %s, got %s", host, want, got)
		}
	}
	if got := replicaOf("127.0.0.1:8000", ""); got != "127.0.0.1:8000" {
		t.Errorf("a machine without a name: got %s", got)
	}
}

// A replica that was never scraped is not taken for idle; one that joins later is included after its first scrape. All
// replicas may be replaced at once, before a new one has been scraped.
func TestReplicasComeAndGo(t *testing.T) {
	f := newFixture()
	names := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")}
	target := f.target(t, nil, TargetOptions{
		Interval: time.Hour,
		URL:      "http://engines.example:8000", Replicas: "engines.example",
		resolver: func(context.Context, string) ([]netip.Addr, error) { return names, nil },
	})
	e := &server{}
	e.say(`vllm:num_requests_waiting{engine="0"} 7`)
	follow := func() { target.follow(t.Context(), func(context.Context, *endpoint) {}) }
	look := func(i int) {
		target.endpoints[i].fetcher = &Fetcher{client: &http.Client{Transport: e}}
		target.endpoints[i].scrape(t.Context())
	}
	want := func(what string, waiting float64, blind bool) {
		t.Helper()
		if l, err := target.Load(); blind != errors.Is(err, ErrNotScraped) || !blind && (err != nil || l.Waiting != waiting) {
			t.Errorf("%s: want %v waiting, blind %v; got %+v, %v", what, waiting, blind, l, err)
		}
	}
	follow()
	want("nobody has looked", 0, true)
	look(0)
	want("one of two was seen", 0, true)
	e.say(`vllm:num_requests_waiting{engine="0"} 14`)
	look(1)
	want("both were", 14, false)
	names = append(names, netip.MustParseAddr("127.0.0.3"))
	follow()
	want("a third has joined", 14, false)
	e.say(`vllm:num_requests_waiting{engine="0"} 21`)
	look(2)
	want("and was seen", 21, false)

	names = []netip.Addr{netip.MustParseAddr("127.0.0.4")}
	target.o.HTTP.TLSConfig.CAFile = "/no/such/ca.pem"
	for range 2 {
		follow()
	}
	if _, err := target.Load(); err == nil || !strings.Contains(err.Error(), "ca.pem") {
		t.Errorf("want to be blind and told why, got %v", err)
	}
}

// Each address of a DNS name is an engine, requested with the same Host header. Engines whose address leaves the name
// leave the page.
func TestReplicas(t *testing.T) {
	one, two := &server{}, &server{}
	one.say(`vllm:num_requests_waiting{engine="0"} 3`, `vllm:kv_cache_usage_perc{engine="0"} 0.5`)
	two.say(`vllm:num_requests_waiting{engine="0"} 4`, `vllm:num_requests_waiting{engine="1"} 5`, `vllm:kv_cache_usage_perc{engine="0"} 0.9`)
	first := httptest.NewServer(one)
	defer first.Close()
	port := first.Listener.Addr().(*net.TCPAddr).Port
	second := httptest.NewUnstartedServer(two)
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.2:%d", port))
	if err != nil {
		outside.Missing(t, exec.ErrNotFound, fmt.Sprint("want a second loopback address: ", err))
	}
	_ = second.Listener.Close()
	second.Listener = l
	second.Start()
	defer second.Close()

	f := newFixture()
	names := []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::ffff:127.0.0.1")}
	var lookupErr error
	target := f.target(t, nil, TargetOptions{
		Interval: time.Hour,
		URL:      fmt.Sprintf("http://engines.example:%d/v1", port), Replicas: "engines.example",
		resolver: func(_ context.Context, name string) ([]netip.Addr, error) {
			if name != "engines.example" {
				t.Errorf("want the name to be resolved, got %q", name)
			}
			return names, lookupErr
		},
	})
	released := make(chan struct{}, 1)
	start := func(ctx context.Context, e *endpoint) {
		e.scrape(ctx)
		context.AfterFunc(ctx, func() {
			f.collector.release(e.address())
			released <- struct{}{}
		})
	}
	follow := func() { target.follow(t.Context(), start) }
	follow()
	figures := []string{"requests_waiting", "up"}
	a, b := fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("127.0.0.2:%d", port)
	both := []string{
		`requests_waiting{address="` + a + `",rank="0",target="vllm"} 3`, `requests_waiting{address="` + b + `",rank="0",target="vllm"} 4`,
		`requests_waiting{address="` + b + `",rank="1",target="vllm"} 5`, `up{address="` + a + `",target="vllm"} 1`, `up{address="` + b + `",target="vllm"} 1`,
	}
	f.want(t, slices.Clone(figures), both...)
	if l, err := target.Load(); err != nil || l.Waiting != 9 || l.KVCacheUsage != 0.9 {
		t.Errorf("want 9 waiting in the fuller queue and the fullest cache, got %+v, %v", l, err)
	}
	lookupErr = errors.New("no such host")
	follow()
	if !strings.Contains(f.log.String(), "no such host") {
		t.Error("want the failed lookup to be told")
	}
	f.want(t, slices.Clone(figures), both...)
	lookupErr, names = nil, names[1:]
	follow()
	<-released
	f.want(t, slices.Clone(figures), both[0], both[3])
	if len(target.endpoints) != 1 {
		t.Errorf("want one replica left, got %d", len(target.endpoints))
	}
	for _, e := range target.endpoints {
		e.fetcher.Close()
	}
}
