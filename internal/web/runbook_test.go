package web

import (
	"fmt"
	"html"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	tags    = regexp.MustCompile(`<[^>]*>`)
	targets = regexp.MustCompile(`\]\([^)]*\)`)
	words   = regexp.MustCompile(`[\p{L}\p{N}]+`)
	orders  = regexp.MustCompile(`(?m)^ *\d+\. `) // numbers of list items, which HTML leaves to the browser
)

// The page has every word of the document, in its order. That it is rendered as it should be is for tools/runbook to test.
func TestRunbookSaysWhatItsDocumentSays(t *testing.T) {
	document, err := os.ReadFile("../../docs/reference/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	want := words.FindAllString(orders.ReplaceAllString(targets.ReplaceAllString(string(document), ""), ""), -1)
	_, body, found := strings.Cut(runbookPage, "</details>\n")
	body, _, closed := strings.Cut(body, "</main>")
	got := words.FindAllString(html.UnescapeString(tags.ReplaceAllString(body, "")), -1)
	if !found || !closed || len(want) < 5000 {
		t.Fatalf("want a page of 5,000 words, got %d", len(want))
	}
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			t.Fatalf("after %q: want %q, got %q: make runbook", want[max(0, i-8):i], want[i], got[i])
		}
	}
	if len(want) != len(got) {
		t.Errorf("want %d words, got %d: make runbook", len(want), len(got))
	}
}

// Each link inside the page leads to one heading, and each section of an alert can be linked to by the alert's name.
func TestRunbookAnchors(t *testing.T) {
	count := map[string]int{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(runbookPage, -1) {
		count[m[1]]++
	}
	for _, m := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(runbookPage, -1) {
		if count[m[1]] != 1 {
			t.Errorf("#%s: want one heading, got %d", m[1], count[m[1]])
		}
	}
	alerts := regexp.MustCompile(`<h2 id="([^"]*)">(Replayd\w+)</h2>`).FindAllStringSubmatch(runbookPage, -1)
	if len(alerts) < 30 {
		t.Errorf("want the sections of 30 alerts and more, got %d", len(alerts))
	}
	for _, m := range alerts {
		if m[1] != strings.ToLower(m[2]) {
			t.Errorf("%s: want its name in lower case as its anchor, got %s", m[2], m[1])
		}
	}
}

// The page links to the pages that the server has, loads nothing, and has no script.
func TestRunbookPage(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, r.URL.Path) })
	text := func() ([]byte, error) { return []byte("drain: 30s\n"), nil }
	for name, c := range map[string]struct {
		options Options
		want    []string
	}{
		"little": {Options{}, []string{"metrics"}},
		"all":    {Options{Live: page, Config: text, Comparisons: text, Profiling: true}, []string{"live", "metrics", "config"}},
	} {
		got := get(t, serve(t, c.options).URL()+"/runbook", "") // also before replayd is ready
		if kind := got.header.Get("Content-Type"); got.code != 200 || kind != "text/html; charset=utf-8" {
			t.Errorf("%s: want 200 with text/html, got %d, %s", name, got.code, kind)
		}
		var pages []string
		for _, m := range regexp.MustCompile(`<a href="([a-z]+)">`).FindAllStringSubmatch(got.body, -1) {
			pages = append(pages, m[1])
		}
		if !slices.Equal(pages, c.want) {
			t.Errorf("%s: want links to %v, got %v", name, c.want, pages)
		}
		if found := regexp.MustCompile(`(?i)<script|<img|<link|<iframe|@import|url\(|\sstyle=|\son[a-z]+=|<!-- pages`).FindString(got.body); found != "" {
			t.Errorf("%s: want nothing loaded and no script, got %q", name, found)
		}
	}
	s := serve(t, Options{})
	ask(t, "POST", s.URL()+"/runbook", "").check(t, "POST", 405, "Method Not Allowed\n")
}
