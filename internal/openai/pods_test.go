package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/internal/measure"
)

// The faults of pods name the entry and say what is wanted. None shows a password or a query.
func TestPodsAreChecked(t *testing.T) {
	many := make([]string, MaxPods+1)
	for i := range many {
		many[i] = fmt.Sprintf("pod-%d:80", i)
	}
	for _, c := range []struct {
		url  string
		pods []string
		want string // "": none
	}{
		{"http://s/v1", []string{"a:80", "b", "http://c:8000", "d:80/v1", "[::1]:80"}, ""},
		{"https://s/x/chat/completions", []string{"a", "https://b/x/chat/completions"}, ""},
		{"http://s", many[:MaxPods], ""},
		{"http://s", []string{"dns+pods.svc:8000"}, ""},
		{"http://s", many, "pods: want at most 64 pods, got 65"},
		{"http://s", []string{"a:80", "A"}, "pods[1]: want each pod once, got a:80 again"},
		{"http://s", []string{"https://a"}, "pods[0]: want host:port, or an address with the scheme and the path of url"},
		{"http://s", []string{"a/x"}, "pods[0]: want host:port, or an address with the scheme and the path of url"},
		{"http://s", []string{"a?key=sesame"}, "pods[0]: want host:port, or an address with the scheme and the path of url"},
		{"http://s", []string{"u:sesame@a"}, "pods[0]: want no user or password in it: use http.basic_auth"},
		{"http://s", []string{"dns+pods"}, "pods[0]: want dns+NAME:PORT with a DNS name, and no other pod beside it"},
		{"http://s", []string{"dns+127.0.0.1:80"}, "pods[0]: want dns+NAME:PORT with a DNS name, and no other pod beside it"},
		{"http://s", []string{"dns+pods:0"}, "pods[0]: want dns+NAME:PORT with a DNS name, and no other pod beside it"},
		{"http://s", []string{"a", "dns+pods:80"}, "pods[1]: want dns+NAME:PORT with a DNS name, and no other pod beside it"},
		{"http://s", []string{""}, "pods[0]: want a host, got none"},
	} {
		o := Options{URL: c.url, Pods: c.pods}
		_, faults := o.podAddresses()
		got := ""
		if err := faults.Err(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s %v: got %q, want %q", c.url, c.pods[:min(len(c.pods), 5)], got, c.want)
		}
		if strings.Contains(got, "sesame") {
			t.Error("the fault has a secret")
		}
	}
}

// The addresses of a name are sorted, each once and at most 64. They stay when a look-up fails. A pod that stays keeps
// its connections, and one that is gone keeps none.
func TestPodsOfAName(t *testing.T) {
	var found []netip.Addr
	var failure error
	resolve := func(context.Context, string) ([]netip.Addr, error) { return found, failure }
	c := newClient(t, Target{Options: Options{Pods: []string{"dns+pods:8000"}}, Resolve: resolve})
	c.dial = func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		t.Cleanup(func() { _ = far.Close() })
		return near, nil
	}
	l := c.Lane()
	var req measure.Request
	do(t, l, &req)
	if number := l.Aim(0); number != 0 || req.Outcome != measure.ConnectFailed || req.Error != "no pod is known yet" {
		t.Errorf("before the first look-up: pod %d, %s %s", number, req.Outcome, req.Error)
	}
	look := func(addresses ...string) (bool, error) {
		found = nil
		for _, a := range addresses {
			found = append(found, netip.MustParseAddr(a))
		}
		return c.Lookup(t.Context())
	}
	changed, err := look("10.0.0.10", "::ffff:10.0.0.9", "10.0.0.10", "fd00::1")
	want := []string{"10.0.0.9:8000", "10.0.0.10:8000", "[fd00::1]:8000"}
	if got := c.Pods(); !changed || err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %t, %v, want %v", got, changed, err, want)
	}
	for place, want := range []uint16{1, 2, 3, 1} {
		if got := l.Aim(uint64(place)); got != want {
			t.Errorf("place %d is pod %d, want %d", place, got, want)
		}
	}
	if err := c.Warm(t.Context(), 1, 2, 1); err != nil {
		t.Fatal(err)
	}
	open := func() (n []int) {
		for _, p := range c.pods.Load().all {
			n = append(n, p.pool.Fresh(time.Now(), DefaultIdle))
		}
		return n
	}
	gone := c.pods.Load().all[0]
	if changed, err := look("fd00::1", "10.0.0.10", "10.0.0.9"); changed || err != nil {
		t.Errorf("another order is a change: %t, %v", changed, err)
	}
	failure = errors.New("no such host")
	if changed, err := look(); changed || err == nil || c.NumPods() != 3 || c.LookupErrors() != 1 {
		t.Errorf("after a failure: %t, %v, %d pods, %d failures", changed, err, c.NumPods(), c.LookupErrors())
	}
	failure = nil
	if changed, err := look(); changed || err == nil || c.NumPods() != 3 {
		t.Errorf("after an empty answer: %t, %v, %d pods", changed, err, c.NumPods())
	}
	changed, err = look("fd00::1", "10.0.0.10")
	if got := c.Pods(); !changed || err != nil || !slices.Equal(got, want[1:]) {
		t.Errorf("got %v, %t, %v, want %v", got, changed, err, want[1:])
	}
	if n := gone.pool.Fresh(time.Now(), DefaultIdle); n != 0 || !slices.Equal(open(), []int{2, 1}) {
		t.Errorf("the pod that is gone has %d connections, the others %v, want 0, and 2 and 1", n, open())
	}
	many := make([]string, MaxPods+1)
	for i := range many {
		many[i] = fmt.Sprintf("10.0.0.%d", i)
	}
	if changed, err := look(many...); !changed || err == nil || c.NumPods() != MaxPods {
		t.Errorf("of %d addresses: %t, %v, %d pods", len(many), changed, err, c.NumPods())
	}
}

// The certificate of a pod must have the name of url, and so has the Host header. The address of the pod is only
// dialed.
func TestPodsHaveTheNameOfTheURL(t *testing.T) {
	hosts := make(chan string, 2)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { hosts <- r.Host }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // the test provokes a handshake error
	target := start(s, true)
	defer s.Close()
	target.Pods = []string{s.Listener.Addr().String()}
	for url, want := range map[string]string{"https://example.com": "example.com", "https://another.org": ""} {
		target.URL = url
		l := newClient(t, target).Lane()
		var req measure.Request
		do(t, l, &req)
		l.Close()
		got := ""
		if req.Outcome != measure.ConnectFailed {
			got = <-hosts
		}
		if got != want || len(hosts) > 0 || want == "" && !strings.Contains(string(req.Error), "certificate") {
			t.Errorf("%s: the pod got a request for %q, want %q: %s %s", url, got, want, req.Outcome, req.Error)
		}
	}
}
