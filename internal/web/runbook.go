package web

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/prometheus/exporter-toolkit/web"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"

	"replayd/docs/reference"
)

//go:embed runbook.html
var runbookText string

var runbookTemplate = template.Must(template.New("runbook").Parse(runbookText))

// runbook returns the handler of the runbook, which the alerts link to. The page is rendered at its first visit, and
// links to the pages that this server has.
func (s *Server) runbook() http.Handler {
	var pages []web.LandingLinks
	for _, l := range s.landing().Links {
		if l.Address != "runbook" && !strings.HasPrefix(l.Address, "-/") {
			pages = append(pages, l)
		}
	}
	return s.shown(markup, sync.OnceValues(func() ([]byte, error) { return renderRunbook(reference.Alerts, pages) }))
}

// Runbook returns the runbook as a page of its own, to be published where it lives longer than any process.
func Runbook() ([]byte, error) { return renderRunbook(reference.Alerts, nil) }

// A section is a heading of the first level and the alerts below it.
type section struct {
	ID     string
	Title  template.HTML
	Alerts []section
}

var (
	heading  = regexp.MustCompile(`<h([12]) id="([^"]*)">(.*)</h[12]>`)
	relative = regexp.MustCompile(`(?s)<a href="([^"#:][^":]*)">(.*?)</a>`)
	// What may hold the name of an alert that is no word of a sentence: headings, links, code.
	alertName = regexp.MustCompile(`(?s)<(?:h2|a|code)[ >].*?</(?:h2|a|code)>|\bReplayd\w+`)
)

// renderRunbook returns the page. Its headings have the anchors that GitHub gives them, an alert's name in lower case
// among them. HTML in the document is left out.
func renderRunbook(markdown string, pages []web.LandingLinks) ([]byte, error) {
	var rendered, page bytes.Buffer
	md := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	if err := md.Convert([]byte(markdown), &rendered); err != nil {
		return nil, fmt.Errorf("runbook: %w", err)
	}
	body := rendered.String()
	sections := []section{{}}
	anchors := map[string]string{} // by the name of the alert
	for _, m := range heading.FindAllStringSubmatch(body, -1) {
		s := section{ID: m[2], Title: template.HTML(m[3])}
		switch last := &sections[len(sections)-1]; {
		case m[1] == "1":
			sections = append(sections, s)
		case strings.HasPrefix(m[3], "Replayd"):
			last.Alerts = append(last.Alerts, s)
			anchors[m[3]] = s.ID
		}
	}
	body = relative.ReplaceAllStringFunc(body, documentLink)
	body = alertName.ReplaceAllStringFunc(body, func(found string) string {
		if anchors[found] == "" {
			return found
		}
		return `<a href="#` + anchors[found] + `">` + found + "</a>"
	})
	err := runbookTemplate.Execute(&page, map[string]any{
		"Pages": pages, "Documents": reference.Document("docs/README.md"),
		"Sections": sections[min(2, len(sections)):], "Body": template.HTML(body), // without the title of the page
	})
	return page.Bytes(), err
}

// documentLink returns a link to another document, which is not of this server. Where the documents are not published it is the
// document's name.
func documentLink(link string) string {
	parts := relative.FindStringSubmatch(link)
	file, text := path.Join("docs/reference", parts[1]), parts[2]
	if address := reference.Document(file); address != "" {
		return `<a href="` + address + `">` + text + "</a>"
	}
	return text + " (" + file + ")"
}
