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
	"strings"
)

// What each page has inside: it asks nobody for anything.
var (
	//go:embed assets/page.css
	pageStyle template.CSS
	//go:embed assets/page.js
	pageScript template.JS
	//go:embed assets/page.html
	pageText     string
	pageTemplate = template.Must(template.New("page.html").Parse(pageText))
)

// pagePolicy allows the page's own script by its digest, its styles, and no request at all.
func pagePolicy(form bool) string {
	sum := sha256.Sum256([]byte(pageScript))
	action := "'none'"
	if form {
		action = "'self'"
	}
	return "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-" +
		base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action " + action
}

// pageView is a page as its template wants it.
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
	Pictures []picture
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
			view.Pictures = append(view.Pictures, plot.draw(fmt.Sprintf("picture-%d-%d", i+1, k+1)))
		}
		v.Sections = append(v.Sections, view)
	}
	b := bufio.NewWriterSize(w, 1<<16)
	if err := pageTemplate.Execute(b, v); err != nil {
		return fmt.Errorf("page %q: %w", p.Title, err)
	}
	return b.Flush()
}

// Grid is the path of an axis' lines.
func (c picture) Grid() string {
	d := pen{}
	for _, v := range c.YS.ticks {
		if at := c.YS.at(v); at > 1 {
			d.put("M", 0, at)
			d.WriteString("h1000")
		}
	}
	for i := range c.Y.Names {
		d.put("M", 0, c.YS.at(float64(i)))
		d.WriteString("h1000")
	}
	if c.read() {
		for _, v := range c.XS.ticks {
			d.put("M", c.XS.at(v), 0)
			d.WriteString("v-1000")
		}
	}
	return d.String()
}

// read says whether the picture is of points, whose places are read on both axes.
func (c picture) read() bool { return c.Free() || c.Cloud != nil }

// Three says whether a section's pictures fit beside each other.
func (s sectionView) Three() bool {
	return len(s.Pictures) == 3 && !slices.ContainsFunc(s.Pictures, func(c picture) bool { return c.Wide })
}

// Height is that of a picture with a name for each line; "" of others.
func (c picture) Height() string {
	if len(c.Y.Names) == 0 {
		return ""
	}
	return fmt.Sprintf("%drem", 2+3*len(c.Y.Names)/2)
}

// Free says whether there are points: they may reach over the edge and need room around them.
func (p Plot) Free() bool {
	return slices.ContainsFunc(p.Series, func(s Series) bool { return s.Kind == Points })
}

// XName says what the axis shows, and its unit unless that stands at each tick.
func (c picture) XName() string { return c.X.name() }

// YName is the same of the other axis.
func (c picture) YName() string { return c.Y.name() }

func (a Axis) name() string {
	switch {
	case a.Unit == "ms" || a.Unit == "s" || a.Unit == "%" || a.Unit == "":
		return a.Label
	case a.Label == "" || strings.HasPrefix(a.Unit, a.Label):
		return a.Unit
	}
	return a.Label + ", " + a.Unit
}
