package report

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"

	"replayd/internal/chart"
)

// Assets embedded in each page. A page loads nothing from outside.
var (
	//go:embed assets/page.css
	pageStyle template.CSS
	//go:embed assets/page.js
	pageScript template.JS
	//go:embed assets/page.html
	pageText     string
	pageTemplate = template.Must(template.New("page.html").Parse(pageText))
)

// pagePolicy returns a Content-Security-Policy that allows the page's own script by its digest, inline styles and no
// network request.
func pagePolicy(form bool) string {
	sum := sha256.Sum256([]byte(pageScript))
	action := "'none'"
	if form {
		action = "'self'"
	}
	return "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-" +
		base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action " + action
}

type pageView struct {
	Page
	Policy   string
	Style    template.CSS
	Script   template.JS
	Form     *form
	Sections []sectionView
}

type sectionView struct {
	Section
	ID       string
	Pictures []chart.Picture
}

// Write writes the page as one HTML file.
func (p Page) Write(w io.Writer) error {
	v := pageView{
		Page: p, Policy: pagePolicy(p.form != nil), Form: p.form, Style: pageStyle, Script: pageScript,
	}
	for i, s := range p.Sections {
		s.Short = cmp.Or(s.Short, s.Title)
		view := sectionView{Section: s, ID: fmt.Sprintf("section-%d", i+1)}
		for k, plot := range s.Plots {
			view.Pictures = append(view.Pictures, plot.Draw(fmt.Sprintf("picture-%d-%d", i+1, k+1)))
		}
		v.Sections = append(v.Sections, view)
	}
	b := bufio.NewWriterSize(w, 1<<16)
	if err := pageTemplate.Execute(b, v); err != nil {
		return fmt.Errorf("page %q: %w", p.Title, err)
	}
	return b.Flush()
}

// Three reports whether the section has three plots that fit side by side.
func (s sectionView) Three() bool {
	return len(s.Pictures) == 3 && !slices.ContainsFunc(s.Pictures, func(c chart.Picture) bool { return c.Wide })
}
