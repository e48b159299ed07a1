// Command runbook renders docs/reference/alerts.md as the page that replayd serves at /runbook: `make runbook`. It is a module of
// its own, so that neither the product nor its go.mod has a renderer of Markdown. The page is committed, and internal/web embeds it.
package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
	"text/template"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Both paths are relative to this folder.
const (
	root   = "../../"
	source = "docs/reference/alerts.md"
	target = root + "internal/web/runbook.html"
)

//go:embed page.html
var page string

func main() {
	html, err := render()
	if err == nil {
		err = os.WriteFile(target, html, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A section is a heading of the first level and the headings of the second level below it.
type section struct {
	ID, Title string
	Alerts    []section
}

// render returns the page. Its headings have the anchors that GitHub gives them.
func render() ([]byte, error) {
	markdown, err := os.ReadFile(root + source)
	if err != nil {
		return nil, err
	}
	md := goldmark.New(
		goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(links{}, 1))),
	)
	document := md.Parser().Parse(text.NewReader(markdown))
	var body, out bytes.Buffer
	if err := md.Renderer().Render(&body, markdown, document); err != nil {
		return nil, err
	}
	parts := template.Must(template.New("page").Parse(page))
	all := sections(document, markdown)
	err = parts.Execute(&out, map[string]any{"Sections": all, "Body": linkAlerts(body.String(), all)})
	return out.Bytes(), err
}

// sections lists the sections that have alerts.
func sections(document ast.Node, markdown []byte) (all []section) {
	for n := document.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		if !ok {
			continue
		}
		id, _ := h.AttributeString("id")
		s := section{ID: string(id.([]byte)), Title: string(h.Lines().Value(markdown))}
		switch {
		case h.Level == 1:
			all = append(all, s)
		case strings.HasPrefix(s.Title, "Replayd"):
			last := &all[len(all)-1]
			last.Alerts = append(last.Alerts, s)
		}
	}
	return all[1:] // the first is the title of the page
}

var alertName = regexp.MustCompile(`(?s)<(?:h2|a|code)[ >].*?</(?:h2|a|code)>|\bReplayd\w+`)

// linkAlerts makes a link of each name of an alert in the text, but for those in headings, links and code.
func linkAlerts(body string, all []section) string {
	known := map[string]bool{}
	for _, s := range all {
		for _, alert := range s.Alerts {
			known[alert.Title] = true
		}
	}
	return alertName.ReplaceAllStringFunc(body, func(found string) string {
		if !known[found] {
			return found
		}
		return `<a href="#` + strings.ToLower(found) + `">` + found + "</a>"
	})
}

// links renders links. replayd serves no other document, so a link to one has no address here; its title names the document. Where
// OWNER.yaml has a repository, `make owner` adds the address.
type links struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (links) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindLink, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		to := string(n.(*ast.Link).Destination)
		switch {
		case !entering:
			_, err := w.WriteString("</a>")
			return ast.WalkContinue, err
		case strings.HasPrefix(to, "#"), strings.HasPrefix(to, "https://"):
			_, err := fmt.Fprintf(w, `<a href="%s">`, util.EscapeHTML([]byte(to)))
			return ast.WalkContinue, err
		case strings.Contains(to, ":"):
			return ast.WalkStop, fmt.Errorf("%s: want a link to a heading, a file or https://, got %s", source, to)
		}
		_, err := fmt.Fprintf(w, `<a title="%s">`, util.EscapeHTML([]byte(path.Join(path.Dir(source), to))))
		return ast.WalkContinue, err
	})
}
