package live

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/internal/trace"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func get(b *Board, method, path string, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for k, v := range header {
		r.Header[k] = v
	}
	w := httptest.NewRecorder()
	b.Handler().ServeHTTP(w, r)
	return w
}

// TestSnapshotJSON checks the whole page that a viewer gets, with two workloads after 17 seconds.
func TestSnapshotJSON(t *testing.T) {
	run(t, func(t *testing.T, b *Board) {
		chat := newFeed(b, WorkloadOptions{
			Name: "chat", Target: "vllm", URL: "http://key:secret@127.0.0.1:8000/v1?key=secret", API: "chat", Model: "qwen3-8b",
			Schedule: "loop on the wall clock", Lanes: 256,
			SLO: measure.SLO{
				{Quantity: measure.TTFT, Limit: 150}, {Quantity: measure.TPOT, Limit: 0.5}, {Quantity: measure.PerUser, Limit: 20},
			},
			Objective: 0.99,
			Trace:     metrics.TraceInfo{Path: "chat.jsonl", Format: "mooncake", SHA256: "0123456789abcdef", Requests: 12031},
			From:      10 * second, To: 50 * second,
			Length: 58 * second, Curve: trace.Curve{Bin: 30 * second, Requests: []int64{3, 4}, InputTokens: []int64{300, 400}, OutputTokens: []int64{30, 40}},
		})
		newFeed(b, WorkloadOptions{Name: "night", Target: "tgi", Schedule: "cron 0 3 * * *, skip"}).change(func(s *State) {
			s.Phase, s.TargetUp, s.TargetText, s.Next = Waiting, false, "", time.Now().Add(3*time.Hour)
		})
		start := time.Now()
		chat.change(func(s *State) {
			s.Started, s.Loop, s.LoopDuration, s.Next, s.Skew = start, 7, time.Hour, start.Add(time.Hour), 3*ms
			s.Ledger.Expected, s.Ledger.InFlight, s.Ledger.Waiting, s.Ledger.Retries = 5, 4, 1, 2
		})
		b.Note(start, slog.LevelInfo, "started")
		for i := range 16 {
			pass(second)
			chat.change(func(s *State) { s.Position = time.Duration(i) * second })
			chat.end(measure.OK, time.Duration(80+20*(i%5))*ms, 500*time.Microsecond, "")
			if i%4 == 0 {
				chat.end(measure.HTTP5xx, 0, 0, `503 "no"`)
				chat.drop(measure.Overload, 1)
			}
		}
		pass(second)
		r := get(b, http.MethodGet, "/live/snapshot.json", nil)
		if r.Header().Get("Content-Type") != "application/json" {
			t.Errorf("got %v", r.Header())
		}
		text := strings.Replace(r.Body.String(), b.build, "BUILD", 1)
		var got bytes.Buffer
		if err := json.Indent(&got, []byte(text), "", "  "); err != nil {
			t.Fatal(err)
		}
		got.WriteByte('\n')
		if *update {
			if err := os.WriteFile("testdata/snapshot.json", got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile("testdata/snapshot.json")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("testdata/snapshot.json (-want +got):\n%s", diff)
		}
	})
}

// TestNothingFromElsewhere: the policy forbids other hosts, and no file of the page refers to one.
func TestNothingFromElsewhere(t *testing.T) {
	b := New(Options{})
	inline := regexp.MustCompile(`(?i)<style|\sstyle=|<script[^>]*>[^<]|\son[a-z]+=|javascript:`)
	outside := regexp.MustCompile(`https?:|//[a-z]+\.`)
	for _, path := range []string{"/live", "/live/live.js", "/live/live.css", "/live/icon.svg", "/live/snapshot.json", "/live/none"} {
		r := get(b, http.MethodGet, path, nil)
		p := r.Header().Get("Content-Security-Policy")
		if !strings.Contains(p, "default-src 'none'") || strings.Contains(p, "unsafe") || !strings.Contains(p, "script-src 'self'") {
			t.Errorf("%s: policy %q", path, p)
		}
		if r.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, r.Header())
		}
		if (r.Code == http.StatusNotFound) != (path == "/live/none") {
			t.Errorf("%s: %d", path, r.Code)
		}
		text := strings.ReplaceAll(r.Body.String(), "http://www.w3.org/2000/svg", "") // a name that nothing loads
		if path == "/live" && inline.MatchString(text) {
			t.Errorf("%s: inline script or style: %q", path, inline.FindString(text))
		}
		if outside.MatchString(text) {
			t.Errorf("%s: %q", path, outside.FindString(text))
		}
	}
}

// TestWeight limits the size of the page and its files, uncompressed and without data.
func TestWeight(t *testing.T) {
	b := New(Options{})
	total := len(get(b, http.MethodGet, "/live", nil).Body.String())
	entries, err := assets.ReadDir("assets")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != pageFile {
			total += get(b, http.MethodGet, "/live/"+e.Name(), nil).Body.Len()
		}
	}
	t.Logf("%d bytes", total)
	if total > 46<<10 {
		t.Errorf("%d bytes, want at most %d", total, 46<<10)
	}
}

func TestFiles(t *testing.T) {
	b := New(Options{})
	plain := get(b, http.MethodGet, "/live/live.js", nil)
	text, tag := plain.Body.String(), plain.Header().Get("ETag")
	if plain.Code != http.StatusOK || !strings.HasPrefix(plain.Header().Get("Content-Type"), "text/javascript") || tag == "" || plain.Header().Get("Cache-Control") != "no-cache" {
		t.Fatalf("got %d %v", plain.Code, plain.Header())
	}
	zipped := get(b, http.MethodGet, "/live/live.js", http.Header{"Accept-Encoding": {"br, gzip;q=0.8"}})
	z, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	if unzipped, err := io.ReadAll(z); err != nil || string(unzipped) != text {
		t.Errorf("compressed it is another file, %v", err)
	}
	if h := zipped.Header(); h.Get("ETag") != tag || h.Get("Content-Encoding") != "gzip" || h.Get("Vary") != "Accept-Encoding" ||
		h.Get("Content-Type") != plain.Header().Get("Content-Type") || h.Get("Cache-Control") != "no-cache" {
		t.Errorf("compressed, of %s: got %v", tag, h)
	}
	for _, known := range []string{tag, `"other", ` + tag, "*"} {
		r := get(b, http.MethodGet, "/live/live.js", http.Header{"If-None-Match": {known}})
		if r.Code != http.StatusNotModified || r.Body.String() != "" || r.Header().Get("ETag") != tag || r.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("If-None-Match: %s: got %d %v", known, r.Code, r.Header())
		}
	}
	if r := get(b, http.MethodGet, "/live/live.js",
		http.Header{"If-None-Match": {tag}, "Accept-Encoding": {"gzip"}}); r.Code != http.StatusNotModified {
		t.Errorf("If-None-Match, compressed: got %d", r.Code)
	}
	if r := get(b, http.MethodGet, "/live/live.js", http.Header{"Range": {"bytes=3-9"}}); r.Code != http.StatusPartialContent || r.Body.String() != text[3:10] {
		t.Errorf("a part: got %d %q, want %q", r.Code, r.Body, text[3:10])
	}
	if r := get(b, http.MethodGet, "/live/live.js", http.Header{"If-None-Match": {`"other"`}}); r.Code != http.StatusOK {
		t.Errorf("another tag: got %d", r.Code)
	}
	if r := get(b, http.MethodGet, "/live/page.html", nil); r.Code != http.StatusNotFound {
		t.Errorf("the template itself: got %d", r.Code)
	}
	if r := get(b, http.MethodPost, "/live", nil); r.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: got %d", r.Code)
	}
	if r := get(b, http.MethodGet, "/live/", nil); r.Code != http.StatusFound || r.Header().Get("Location") != "/live" {
		t.Errorf("with a slash: got %d, %s", r.Code, r.Header().Get("Location"))
	}
}

// TestPlainPage: without JavaScript the page has the current figures, and texts from outside are escaped. A latency of
// 100 ms is in the bucket from 92.7 to 101.1 ms, which is shown as 97 ms.
func TestPlainPage(t *testing.T) {
	run(t, func(t *testing.T, b *Board) {
		f := newFeed(b, WorkloadOptions{Name: "<b>chat</b>", Target: "t", URL: "javascript:alert(1)", Model: `"><script>alert(2)</script>`})
		f.change(func(s *State) { s.TargetText = "answers as <img src=x onerror=alert(3)>" })
		pass(second)
		for range 9 {
			f.end(measure.OK, 100*ms, 10*ms, "")
		}
		f.end(measure.HTTP5xx, 0, 0, "<script>alert(4)</script>")
		pass(second)
		text := get(b, http.MethodGet, "/live", nil).Body.String()
		for _, want := range []string{
			"&lt;b&gt;chat&lt;/b&gt;", "&lt;img src=x onerror=alert(3)&gt;", "&lt;script&gt;alert(4)&lt;/script&gt;", `data-level="warn"`,
			"10 expected = 10 finished + 0 dropped + 0 in flight (of 8 lanes) + 0 waiting", "p50 97 ms", "2000-01-01 00:00:02 UTC",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("want %q in\n%s", want, text)
			}
		}
		if regexp.MustCompile(`<script>|<img|<b>chat`).MatchString(text) {
			t.Errorf("not escaped:\n%s", text)
		}
	})
}

// TestPageAtOnce renders the page without the lock while ticks, notes and workloads come, for -race.
func TestPageAtOnce(t *testing.T) {
	b := New(Options{})
	f := newFeed(b, WorkloadOptions{Name: "a"})
	start := time.Now()
	var all sync.WaitGroup
	all.Go(func() {
		for range 50 {
			if text := get(b, http.MethodGet, "/live", nil).Body.String(); !strings.Contains(text, "answers as m") && !strings.Contains(text, "waiting") {
				t.Errorf("got\n%s", text)
			}
		}
	})
	all.Go(func() {
		for i := range 50 {
			f.end(measure.HTTP5xx, 0, 0, "no")
			b.Note(start, slog.LevelInfo, "x")
			b.tick(start.Add(time.Duration(i)*second), i/5)
			b.Remove(newFeed(b, WorkloadOptions{Name: "b"}).Workload)
		}
	})
	all.Wait()
}

// TestEveryOutcomeHasItsMeaning: the page explains the words of the closed lists.
func TestEveryOutcomeHasItsMeaning(t *testing.T) {
	words := get(New(Options{}), http.MethodGet, "/live/words.js", nil).Body.String()
	for _, o := range outcomes {
		if !strings.Contains(words, "\n  "+string(o)+": '") {
			t.Errorf("words.js does not know outcome %s", o)
		}
	}
	for _, why := range dropReasons {
		if !strings.Contains(words, "\n  "+string(why)+": '") {
			t.Errorf("words.js does not know reason %s", why)
		}
	}
}

// TestWideTablesScroll: a table of more than three columns scrolls in its card on a narrow screen, by touch and by
// keyboard. That of the summary leaves columns out instead.
func TestWideTablesScroll(t *testing.T) {
	text, err := assets.ReadFile("assets/" + pageFile)
	if err != nil {
		t.Fatal(err)
	}
	scrolls := regexp.MustCompile(`<div class="wide" role="region" tabindex="0"[^>]*>$`)
	css := get(New(Options{}), http.MethodGet, "/live/live.css", nil).Body.String()
	if !strings.Contains(css, ".wide { overflow-x: auto; }") {
		t.Error("live.css: want .wide to scroll")
	}
	parts, found := strings.Split(string(text), "<table"), 0
	for i, part := range parts[1:] {
		table, _, _ := strings.Cut(part, "</table>")
		if strings.Count(table, "<th ")+strings.Count(table, "<th>") <= 3 || strings.Contains(table, `class="n w3"`) {
			continue
		}
		found++
		if !scrolls.MatchString(parts[i]) {
			t.Errorf("want the table in %v: %s", scrolls, table)
		}
	}
	if found != 2 {
		t.Errorf("want two wide tables, of minutes and of comparisons, got %d", found)
	}
}
