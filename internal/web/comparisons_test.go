package web

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// /-/comparisons has what the daemon gives, as JSON. It is there only if there is a daemon.
func TestComparisons(t *testing.T) {
	var err error
	s := serve(t, Options{Comparisons: func() ([]byte, error) { return []byte("[]\n"), err }})
	a := ask(t, "GET", s.URL()+"/-/comparisons", "")
	if kind := a.header.Get("Content-Type"); a.code != 200 || a.body != "[]\n" || kind != "application/json" {
		t.Errorf("want the list as JSON, got %d, %q, %s", a.code, a.body, kind)
	}
	ask(t, "POST", s.URL()+"/-/comparisons", "").check(t, "POST", 405, "Method Not Allowed\n")
	err = errors.New("no number")
	ask(t, "GET", s.URL()+"/-/comparisons", "").check(t, "failed", 500, "no number\n")

	without := serve(t, Options{Lifecycle: true})
	ask(t, "GET", without.URL()+"/-/comparisons", "").check(t, "none", 404, "404 page not found\n")
	ask(t, "POST", without.URL()+"/-/comparisons/a/restart", "").check(t, "no restart", 404, "404 page not found\n")
}

// A restart names one comparison. It needs the lifecycle flag, and no page of another site may ask for it.
func TestRestartComparison(t *testing.T) {
	var calls []string
	restart := func(_ context.Context, name, version string) (bool, error) {
		switch name {
		case "nobody":
			return false, fmt.Errorf("want the name of a comparison, got %q", name)
		case "slow":
			return false, context.DeadlineExceeded
		}
		calls = append(calls, name+version)
		return true, nil
	}
	s := serve(t, Options{Lifecycle: true, RestartComparison: restart})
	const path = "/-/comparisons/a.b-c_9/restart"
	ask(t, "POST", s.URL()+path, "").check(t, "POST", 200, "Comparison \"a.b-c_9\" begins anew.\n")
	ask(t, "PUT", s.URL()+path, "", "Origin", s.URL()).check(t, "PUT", 200, "Comparison \"a.b-c_9\" begins anew.\n")
	ask(t, "GET", s.URL()+path, "").check(t, "GET", 405, "Method Not Allowed\n")
	ask(t, "POST", s.URL()+"/-/comparisons/nobody/restart", "").check(t, "unknown", 404, "want the name of a comparison, got \"nobody\"\n")
	ask(t, "POST", s.URL()+"/-/comparisons/slow/restart", "").check(t, "slow", 503, "context deadline exceeded\n")
	for _, c := range [][2]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
		if got := ask(t, "POST", s.URL()+path, "", c[0], c[1]); got.code != 403 {
			t.Errorf("from %v: want 403, got %d: %s", c, got.code, got.body)
		}
	}
	off := serve(t, Options{RestartComparison: restart})
	ask(t, "POST", off.URL()+path, "").check(t, "off", 403, "Lifecycle API is not enabled.\n")
	if d := cmp.Diff([]string{"a.b-c_9", "a.b-c_9"}, calls); d != "" {
		t.Errorf("calls: -want +got\n%s", d)
	}
}
