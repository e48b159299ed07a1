package web

import (
	_ "embed"
	"fmt"
	"net/http"
	"strings"
)

// runbookPage is docs/reference/alerts.md as tools/runbook renders it. The alerts link to its headings.
//
//go:embed runbook.html
var runbookPage string

// runbook returns the handler of the runbook. The page links to the pages that this server has.
func (s *Server) runbook() http.Handler {
	var links strings.Builder
	for _, l := range s.landing().Links {
		if l.Address != "runbook" && !strings.HasPrefix(l.Address, "-/") {
			fmt.Fprintf(&links, "<a href=%q>%s</a>\n", l.Address, l.Text)
		}
	}
	text := strings.Replace(runbookPage, "<!-- pages -->\n", links.String(), 1)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(text))
	})
}
