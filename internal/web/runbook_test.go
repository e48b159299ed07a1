package web

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"replayd/docs/reference"
)

// Each link inside the page leads to one heading, and each alert of the rules has its name in lower case as the anchor
// of its section, which its runbook_url ends in.
func TestRunbookAnchors(t *testing.T) {
	page, err := renderRunbook(reference.Alerts, nil)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(string(page), -1) {
		count[m[1]]++
	}
	for _, m := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(string(page), -1) {
		if count[m[1]] != 1 {
			t.Errorf("#%s: want one heading, got %d", m[1], count[m[1]])
		}
	}
	files, err := filepath.Glob("../../alerts/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	alerts := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(string(text), -1) {
			alerts++
			heading := fmt.Sprintf(`<h2 id="%s">%s</h2>`, strings.ToLower(m[1]), m[1])
			if !strings.Contains(string(page), heading) {
				t.Errorf("%s: want %s", file, heading)
			}
		}
	}
	if alerts < 30 {
		t.Errorf("want 30 alerts and more, got %d", alerts)
	}
}

// The document's HTML is no part of the page, and neither is a link that runs a script. A link to another document has
// no address that this server does not have.
func TestRunbookRendersMarkdownAlone(t *testing.T) {
	page, err := renderRunbook("# Title\n\n# Group\n\n## ReplaydDown\n\n<script>alert(1)</script>\n\nSee ReplaydDown, "+
		"[metrics](metrics.md#up), [below](#replayddown), [run](javascript:alert(1)) <b onclick=\"x()\">bold</b>.\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, no := range []string{"<script", "javascript:", "onclick", "<b "} {
		if strings.Contains(string(page), no) {
			t.Errorf("want no %s in the page", no)
		}
	}
	for _, want := range []string{
		"<p><a href=\"#group\">Group</a></p>\n<ul>\n<li><a href=\"#replayddown\">ReplaydDown</a></li>\n</ul>",
		`<h2 id="replayddown">ReplaydDown</h2>`, `See <a href="#replayddown">ReplaydDown</a>, metrics (docs/reference/metrics.md#up)`, `<a href="#replayddown">below</a>`,
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("want %s in the page", want)
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
		loads := regexp.MustCompile(`(?i)<script|<img|<link|<iframe|@import|url\(|\sstyle=|\son[a-z]+=|\{\{`)
		if found := loads.FindString(got.body); found != "" {
			t.Errorf("%s: want nothing loaded and no script, got %q", name, found)
		}
	}
	s := serve(t, Options{})
	ask(t, "POST", s.URL()+"/runbook", "").check(t, "POST", 405, "Method Not Allowed\n")
}
