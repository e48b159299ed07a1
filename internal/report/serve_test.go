package report

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"replayd/internal/measure"
	"replayd/internal/result"
	"replayd/internal/visitors"
	"replayd/test/resulttest"
)

// onDisk writes two runs of the example to a folder.
func onDisk(t *testing.T) (dir string, sources []result.Source) {
	t.Helper()
	_, file := resulttest.Collected(t)
	dir = t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, result.ExportName), file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sources, err := result.FindRuns([]string{dir}, true)
	if err != nil || len(sources) != 2 {
		t.Fatalf("%+v, %v", sources, err)
	}
	return dir, sources
}

func ask(d *Dashboard, method, target, host string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, target, nil)
	r.Host = host
	d.ServeHTTP(w, r)
	return w
}

func TestDashboard(t *testing.T) {
	dir, sources := onDisk(t)
	d := NewDashboard(sources, "dark", "Made by a test.", "localhost", "127.0.0.1", "::1")
	f := func(method, target, host string, status int, want ...string) {
		t.Helper()
		w := ask(d, method, target, host)
		if w.Code != status {
			t.Errorf("%s %s: status %d, want %d", method, target, w.Code, status)
		}
		for _, text := range want {
			if !strings.Contains(w.Body.String(), text) {
				t.Errorf("%s %s: want %q in it", method, target, text)
			}
		}
		policy := w.Header().Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s %s: policy %q", method, target, policy)
		}
	}
	const host = "localhost:8050"
	f("GET", "/", host, 200, "2 runs side by side", `value="a" checked`, `value="b" checked`, `data-theme="dark"`, "240 of 240 measured requests shown")
	f("GET", "/?run=b", host, 200, "<h1>b</h1>", "120 of 120 measured requests shown")
	f("GET", "/?run=b&outcome=http_429", host, 200, "1 of 120 measured requests shown", `<option value="http_429" selected>`)
	f("GET", "/?run=b&phase=warmup", host, 200, "3 of 120 measured")
	f("GET", "/?run=b&from=10&to=20", host, 200, `name="from" value="10"`)
	f("GET", "/?run=b&session=nobody", host, 200, "0 of 120", "There is no request in this run.")
	f("GET", "/?run=%3Cb%3E", host, 400, "run: want one of those listed, got &#34;&lt;b&gt;&#34;")
	f("GET", "/?from=-1&to=x&min_input=1.5&phase=p&outcome=o", host, 400, "from: want seconds", "to: want seconds", "min_input: want tokens", "phase: want", "outcome: want")
	f("GET", "/?from=9&to=3&min_input=9&max_input=3", host, 400, "to: want more seconds than from", "max_input: want at least")
	f("GET", "/", "127.0.0.1", 200)
	f("GET", "/", "[::1]:8050", 200)
	f("GET", "/", "elsewhere.example:8050", http.StatusMisdirectedRequest, "want one of the hosts")
	f("POST", "/", host, 405)
	f("GET", "/favicon.ico", host, 404)
	if w := ask(d, "HEAD", "/", host); w.Code != 200 || w.Body.Len() > 0 || w.Header().Get("Content-Length") == "0" {
		t.Errorf("HEAD: %d, %d bytes, %v", w.Code, w.Body.Len(), w.Header())
	}

	// New rows of a running run appear; unreadable lines are reported.
	path := filepath.Join(dir, "a", result.ExportName)
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfterN(string(file), "\n", 4)
	if err := os.WriteFile(path, []byte(strings.Join(lines[:3], "")+lines[3][:20]), 0o644); err != nil {
		t.Fatal(err)
	}
	f("GET", "/?run=a", host, 200, "cut in mid-line")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	f("GET", "/?run=a", host, 200, "no such file")
}

// Each filter keeps the rows that an independent predicate keeps.
func TestFilter(t *testing.T) {
	run := resulttest.Run(t)
	f := func(query string, keep func(result.Row) bool) {
		t.Helper()
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		filter, errs := readFilter(q)
		if len(errs) > 0 {
			t.Errorf("%s: %q", query, errs)
		}
		want := 0
		for _, r := range run.Rows {
			if keep(r) {
				want++
			}
		}
		if got := len(filter.apply(run).Measured()); got != want || want == 0 || want == len(run.Rows) && query != "phase=all" {
			t.Errorf("%s: %d rows, want %d of %d", query, got, want, len(run.Rows))
		}
	}
	measured := func(r result.Row) bool { return r.Phase == measure.Profiling }
	zero := newRunData(run).zero
	seconds := func(r result.Row) float64 { return float64(max(r.Start, 1)-zero) / 1e9 }
	f("", measured)
	f("phase=all", func(result.Row) bool { return true })
	f("phase=warmup", func(r result.Row) bool { return !measured(r) })
	f("outcome=cancelled", func(r result.Row) bool { return measured(r) && r.Outcome == measure.Cancelled })
	f("from=5.5", func(r result.Row) bool { return measured(r) && (seconds(r) >= 5.5 || r.Start == 0) })
	f("to=5.5", func(r result.Row) bool { return measured(r) && seconds(r) < 5.5 && r.Start != 0 })
	f("min_input=2000&max_input=4000", func(r result.Row) bool { return measured(r) && r.Input >= 2000 && r.Input <= 4000 })
	f("session=s4", func(r result.Row) bool { return measured(r) && r.Conversation == "s4" })
}

// Run returns when its context ends, and frees the port.
func TestDashboardRun(t *testing.T) {
	_, sources := onDisk(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- NewDashboard(sources, "", "").Run(ctx, l) }()
	resp, err := http.Get("http://" + l.Addr().String() + "/?run=a")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(text), "<h1>a</h1>") {
		t.Errorf("%v, %s", err, resp.Status)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("want the listener closed, got %v", err)
	}
}

// For any query string, errors are reported and the filter keeps a subset of the rows.
func FuzzFilter(f *testing.F) {
	for _, query := range []string{"", "phase=warmup&from=1e300", "to=NaN", "min_input=-1&max_input=99999999999999999999", "session=%00&outcome=ok;", "from=0x1p-2&to=Inf"} {
		f.Add(query)
	}
	rows := []result.Row{{Start: 1, Input: 5, Outcome: measure.OK}, {End: 9, Phase: measure.Warmup, Conversation: "s"}}
	f.Fuzz(func(t *testing.T, query string) {
		q, _ := url.ParseQuery(query) // what could be read of it
		filter, _ := readFilter(q)
		if !(filter.From >= 0 && filter.To > filter.From) || filter.MinInput < 0 || filter.MaxInput < 0 {
			t.Errorf("%+v", filter)
		}
		if left := filter.apply(result.Run{Rows: rows}); len(left.Rows) > len(rows) {
			t.Errorf("%d rows of %d", len(left.Rows), len(rows))
		}
	})
}

// Silent visitors make room for each other: one address has a quarter of the connections.
func TestDashboardVisitors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- NewDashboard(nil, "", "").Run(ctx, l) }()
	var first, last net.Conn
	for range visitors.Most/4 + 1 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if first == nil {
			first = c
		}
		last = c
	}
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("want the oldest connection closed, got %v", err)
	}
	// The others stay: it was not the time that closed the oldest.
	if _, err := io.WriteString(last, "GET / HTTP/1.0\r\n\r\n"); err != nil {
		t.Error(err)
	}
	if _, err := last.Read(make([]byte, 1)); err != nil {
		t.Errorf("want the youngest connection open, got %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
