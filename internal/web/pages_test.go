package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var links = regexp.MustCompile(`<a href="([^"]*)"[^>]*>([^<]*)</a>(: [^<]*)?`)

// The landing page links to the pages that exist, the live page first, and to nothing else.
func TestLanding(t *testing.T) {
	always := []string{
		"/metrics|Metrics|: what Prometheus scrapes",
		"/runbook|Runbook|: what each alert means, and what to do",
		"/-/ready|Ready|: 200 once replayd is up; never depends on a target",
		"/-/healthy|Healthy|: 200 while the process answers and its replay moves",
	}
	live := "/live|Live page|: what is being replayed and how the servers answer, as it happens"
	config := "/config|Config|: the running configuration, without its secrets"
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, r.URL.Path) })
	text := func() ([]byte, error) { return []byte("drain: 30s\n"), nil }
	for name, c := range map[string]struct {
		options Options
		want    []string
	}{
		"little": {Options{}, always},
		"all": {Options{Live: page, Config: text, Profiling: true}, []string{
			live, always[0], config, always[1], always[2], always[3],
			"/debug/pprof/heap|heap usage (memory)|", "/debug/pprof/profile?seconds=60|CPU usage (60 second profile)|",
			"https://pprof.me|pprof.me|",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.Version = "1.2.3"
			s := serve(t, c.options)
			s.Ready()
			got := get(t, s.URL()+"/", "")
			if kinds := got.header.Values("Content-Type"); got.code != 200 || !cmp.Equal(kinds, []string{"text/html; charset=utf-8"}) {
				t.Errorf("want 200 with text/html, got %d, %q", got.code, kinds)
			}
			for _, want := range []string{
				"<!DOCTYPE html>\n<html lang=\"en\">", "<title>replayd</title>", `name="viewport"`, "Version: 1.2.3", "color-scheme: light dark",
			} {
				if !strings.Contains(got.body, want) {
					t.Errorf("want %q in\n%s", want, got.body)
				}
			}
			for _, bad := range []string{"<script", "<img", "<link", "@import", "url("} {
				if strings.Contains(got.body, bad) {
					t.Errorf("want nothing loaded, got %q in\n%s", bad, got.body)
				}
			}
			var found []string
			for _, m := range links.FindAllStringSubmatch(got.body, -1) {
				found = append(found, strings.Join(m[1:], "|"))
				if strings.HasPrefix(m[1], "/") && !strings.Contains(m[1], "?") {
					if linked := get(t, s.URL()+m[1], ""); linked.code != 200 {
						t.Errorf("%s: want 200, got %d", m[1], linked.code)
					}
				}
			}
			if d := cmp.Diff(c.want, found); d != "" {
				t.Errorf("links: -want +got\n%s", d)
			}
		})
	}
}

func TestConfigPage(t *testing.T) {
	var err error
	s := serve(t, Options{Config: func() ([]byte, error) { return []byte("drain: 30s\n"), err }})
	get(t, s.URL()+"/config", "").check(t, "/config", 200, "drain: 30s\n")
	ask(t, "POST", s.URL()+"/config", "").check(t, "POST /config", 405, "Method Not Allowed\n")
	err = errors.New("no words for it")
	get(t, s.URL()+"/config", "").check(t, "/config", 500, "no words for it\n")
	without := serve(t, Options{})
	get(t, without.URL()+"/config", "").check(t, "/config", 404, "404 page not found\n")
	get(t, without.URL()+"/live", "").check(t, "/live", 404, "404 page not found\n")
}

// The live handler serves every path at /live and below, with its methods and headers.
func TestLivePageIsMounted(t *testing.T) {
	s := serve(t, Options{Live: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		fmt.Fprint(w, r.Method, " ", r.URL.Path)
	})})
	for _, path := range []string{"/live", "/live/", "/live/events", "/live/a/b.js"} {
		if got := get(t, s.URL()+path, ""); got.body != "GET "+path || got.header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: got %q, %v", path, got.body, got.header)
		}
	}
	if got := ask(t, "POST", s.URL()+"/live", ""); got.body != "POST /live" {
		t.Errorf("POST: got %q", got.body)
	}
	if got := get(t, s.URL()+"/lively", ""); got.code != 404 {
		t.Errorf("/lively: want 404, got %d", got.code)
	}
}

func TestProfiling(t *testing.T) {
	s := serve(t, Options{Profiling: true})
	for path, want := range map[string]string{
		"/debug/pprof/": "goroutine", "/debug/pprof/heap?debug=1": "heap profile: ", "/debug/pprof/goroutine?debug=1": "goroutine profile: ",
		"/debug/pprof/cmdline": ".test", "/debug/pprof/symbol": "num_symbols: 1",
	} {
		if got := get(t, s.URL()+path, ""); got.code != 200 || !strings.Contains(got.body, want) {
			t.Errorf("%s: want %q, got %d, %s", path, want, got.code, got.body)
		}
	}
	off := serve(t, Options{Reload: func(context.Context) error { return nil }})
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile?seconds=1", "/debug/pprof/trace"} {
		get(t, off.URL()+path, "").check(t, path, 404, "404 page not found\n")
	}
}
