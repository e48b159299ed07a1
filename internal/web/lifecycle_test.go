package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ask sends one request, with a form as its body unless form is empty.
func ask(t *testing.T, method, url, form string, header ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	if form != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, false, string(body)}
}

// check requires the status, the whole text and the common headers.
func (a answer) check(t *testing.T, about string, status int, text string) {
	t.Helper()
	if a.code != status || a.body != text {
		t.Errorf("%s: want %d, %q, got %d, %q", about, status, text, a.code, a.body)
	}
	for key, want := range map[string]string{
		"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
	} {
		if got := a.header.Get(key); got != want {
			t.Errorf("%s: %s: want %q, got %q", about, key, want, got)
		}
	}
}

func TestPause(t *testing.T) {
	var calls []string
	s := serve(t, Options{Lifecycle: true, Pause: func(_ context.Context, workload string, paused bool) error {
		switch workload {
		case "nobody":
			return fmt.Errorf("want the name of a workload, got %q", workload)
		case "slow":
			return context.DeadlineExceeded
		}
		calls = append(calls, fmt.Sprintf("%s %v", workload, paused))
		return nil
	}})
	f := func(method, path, form string, status int, text string) {
		t.Helper()
		ask(t, method, s.URL()+path, form).check(t, method+" "+path+" "+form, status, text)
	}
	f("POST", "/-/pause", "", 200, "All workloads are paused.\n")
	f("PUT", "/-/resume", "", 200, "All workloads are resumed.\n")
	f("POST", "/-/pause?workload=a", "", 200, "Workload \"a\" is paused.\n")
	f("POST", "/-/resume", "workload=a.b-c_9", 200, "Workload \"a.b-c_9\" is resumed.\n")
	f("PUT", "/-/resume", "workload=a", 200, "Workload \"a\" is resumed.\n")
	want := []string{" true", " false", "a true", "a.b-c_9 false", "a false"}

	f("POST", "/-/pause?workload=nobody", "", 404, "want the name of a workload, got \"nobody\"\n")
	f("POST", "/-/pause?workload=slow", "", 503, "context deadline exceeded\n")
	f("GET", "/-/pause", "", 405, "Method Not Allowed\n")
	f("DELETE", "/-/resume", "", 405, "Method Not Allowed\n")
	if got := ask(t, "GET", s.URL()+"/-/pause", "").header.Get("Allow"); got != "POST, PUT" {
		t.Errorf("Allow: want POST, PUT, got %q", got)
	}

	// An unknown parameter pauses nothing.
	const once = "want workload=NAME once, or nothing for all, got "
	f("POST", "/-/pause?wokload=a", "", 400, once+"\"wokload=a\"\n")
	f("POST", "/-/pause?workload=", "", 400, once+"\"workload=\"\n")
	f("POST", "/-/pause?workload=a", "workload=b", 400, once+"\"workload=b&workload=a\"\n")
	f("POST", "/-/pause", "workload=a&for=1h", 400, once+"\"for=1h&workload=a\"\n")
	f("POST", "/-/pause", `{"workload": "a"}`, 400, once+"\"%7B%22workload%22%3A+%22a%22%7D=\"\n")
	f("POST", "/-/pause?workload=%zz", "", 400, "invalid URL escape \"%zz\"\n")
	f("POST", "/-/pause", "workload="+strings.Repeat("a", maxForm), 400, "http: request body too large\n")
	ask(t, "POST", s.URL()+"/-/pause", "{}", "Content-Type", "application/json").
		check(t, "JSON", 400, "want a form as application/x-www-form-urlencoded, got \"application/json\"\n")
	if d := cmp.Diff(want, calls); d != "" {
		t.Errorf("calls: -want +got\n%s", d)
	}
	f("POST", "/-/reload", "", 404, "404 page not found\n")
}

func TestReload(t *testing.T) {
	var err error
	calls := 0
	s := serve(t, Options{Lifecycle: true, Reload: func(context.Context) error { calls++; return err }})
	ask(t, "POST", s.URL()+"/-/reload", "").check(t, "good", 200, "The configuration is reloaded.\n")
	ask(t, "PUT", s.URL()+"/-/reload", "").check(t, "good", 200, "The configuration is reloaded.\n")
	err = errors.Join(errors.New("a.yaml:1: drain: want b"), errors.New("a.yaml:2: lanes: want c"))
	ask(t, "POST", s.URL()+"/-/reload", "").
		check(t, "bad", 500, "The configuration is not reloaded:\na.yaml:1: drain: want b\na.yaml:2: lanes: want c\n")
	ask(t, "GET", s.URL()+"/-/reload", "").check(t, "GET", 405, "Method Not Allowed\n")
	if calls != 3 {
		t.Errorf("want 3 reloads, got %d", calls)
	}
	ask(t, "POST", s.URL()+"/-/pause", "").check(t, "nothing to pause", 404, "404 page not found\n")
}

func TestLifecycleIsOff(t *testing.T) {
	touched := func() error { t.Error("it is on"); return nil }
	s := serve(t, Options{
		Reload: func(context.Context) error { return touched() }, Pause: func(context.Context, string, bool) error { return touched() },
	})
	for _, path := range []string{"/-/reload", "/-/pause", "/-/resume?workload=a"} {
		for _, method := range []string{"POST", "PUT"} {
			ask(t, method, s.URL()+path, "").check(t, method+" "+path, 403, "Lifecycle API is not enabled.\n")
		}
		ask(t, "GET", s.URL()+path, "").check(t, path, 405, "Method Not Allowed\n")
	}
}

// A page of another site must not be able to pause replayd through an operator's browser.
func TestOtherSitesArePowerless(t *testing.T) {
	calls := 0
	s := serve(t, Options{
		Lifecycle: true, Reload: func(context.Context) error { calls++; return nil }, Pause: func(context.Context, string, bool) error { calls++; return nil },
	})
	for _, path := range []string{"/-/reload", "/-/pause", "/-/resume"} {
		for _, c := range []struct {
			key, value string
			status     int
		}{
			{"Sec-Fetch-Site", "cross-site", 403},
			{"Sec-Fetch-Site", "same-site", 403}, // another port of this host is another origin
			{"Origin", "https://evil.example", 403},
			{"Origin", "null", 403},
			{"Sec-Fetch-Site", "same-origin", 200},
			{"Sec-Fetch-Site", "none", 200},
			{"Origin", s.URL(), 200},
		} {
			calls = 0
			got := ask(t, "POST", s.URL()+path, "", c.key, c.value)
			if got.code != c.status || calls > 0 != (c.status == 200) {
				t.Errorf("%s from %s %s: want %d, got %d after %d calls: %s", path, c.key, c.value, c.status, got.code, calls, got.body)
			}
		}
	}
}
