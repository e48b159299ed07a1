package main

import (
	"strings"
	"testing"
)

func TestNotes(t *testing.T) {
	const text = "# Changelog\n\nHead.\n\n## Unreleased\n\n- new\n\n" +
		"## 1.2.0 (2026-01-02)\n\n- two\n\n### More\n\n- three\n\n## [1.1.0] - 2025\n\n- one\n\n## 1.0.0\n"
	for _, c := range []struct{ version, want, err string }{
		{"v1.2.0", "- two\n\n### More\n\n- three\n", ""},
		{"v1.1.0", "- one\n", ""},
		{"v1.2.0-3-gabc", "- new\n", ""},
		{"0.0.0-dev", "- new\n", ""},
		{"v1.3.0-rc.1", "- new\n", ""},
		{"v1.3.0", "", "CHANGELOG.md: want the section ## 1.3.0, there is none"},
		{"v1.0.0", "", "CHANGELOG.md: ## 1.0.0: want the changes of the release, got none"},
	} {
		v, err := parseVersion(c.version)
		if err != nil {
			t.Fatal(err)
		}
		got, err := changes(text, v)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: want %q, %q, got %q, %v", c.version, c.want, c.err, got, err)
		}
	}
}

func TestLinksOfNotes(t *testing.T) {
	const text = "see [a page](docs/a.md#part), [a site](https://example.com/b)"
	for repository, want := range map[string]string{
		"":                       "see a page, [a site](https://example.com/b)",
		"https://git.example/me": "see [a page](https://git.example/me/blob/0123abc/docs/a.md#part), [a site](https://example.com/b)",
	} {
		if got := absolute(text, repository, "0123abc"); got != want {
			t.Errorf("%q: want %s, got %s", repository, want, got)
		}
	}
}
