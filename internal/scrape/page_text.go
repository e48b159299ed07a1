package scrape

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// A badLine is a line of a text page that cannot be parsed.
type badLine struct {
	n    int // line number from 1; 0: no bad line
	text []byte
	why  string
}

func (b badLine) err() error {
	return errorOf(ReasonParse, "line %d: %s, got %q", b.n, b.why, clip(string(b.text[:min(len(b.text), 200)]), 80))
}

// A tidied is the lines of a page as the parser gets them. Each line is one entry of the parser, so that errors can be given a line number, which the
// parser does not report.
type tidied struct {
	text  []byte
	lines []badLine // with the reason why a line is not for the parser, which has a comment in its place; "": it is
	last  badLine   // in which the page ends, and which is not among the others
}

// tidy copies the lines for the parser, without blank ones. It trims blanks and carriage returns: the parser of 0.0.4
// takes leading blanks for a part of the name and rejects a carriage return.
func tidy(body []byte, openMetrics bool) tidied {
	clean := tidied{text: make([]byte, 0, len(body)+2)} // room for the line end that the parser appends
	for n := 1; len(body) > 0; n++ {
		text, rest, whole := bytes.Cut(body, []byte("\n"))
		body = rest
		if text = bytes.Trim(text, " \t\r"); len(text) == 0 {
			continue
		}
		line := badLine{n: n, text: text}
		if !whole && (!openMetrics || string(line.text) != "# EOF") {
			line.why = "the page ends in mid-line, want a line end"
			clean.last = line
			break
		}
		switch {
		case len(text) > maxLineBytes && text[0] == '#':
			text = []byte("#")
			if name := nameOn(line.text); name != "" { // the help of a family may be long
				text = []byte("# HELP " + name + " -")
			}
		case len(text) > maxLineBytes:
			line.why = fmt.Sprintf("want a line of at most %d bytes", maxLineBytes)
		case text[0] != '#' && endsInQuotes(text), openName.Match(text):
			line.why = "want the quotes closed"
		}
		if line.why != "" {
			text = []byte("#")
		}
		clean.lines = append(clean.lines, line)
		clean.text = append(append(clean.text, text...), '\n')
	}
	return clean
}

// maxBad bounds the lines that cannot be read. A page with more is another thing.
const maxBad = 1000

// text reads a page in one of the text formats. It reads on behind a line that cannot be read.
func (r *reader) text(body []byte, openMetrics bool) error {
	page := tidy(body, openMetrics)
	at, rest := 0, page.text
	for {
		n, err := r.entries(page.lines[at:], rest, openMetrics)
		if fault, ok := errors.AsType[*Error](err); ok {
			return fault
		}
		at += n
		if err == nil || at >= len(page.lines) { // all lines have been read
			break
		}
		bad := page.lines[at]
		bad.why = parserSays(err)
		if err := r.bad(bad); err != nil {
			return err
		}
		for range n + 1 {
			rest = rest[bytes.IndexByte(rest, '\n')+1:]
		}
		at++
	}
	r.undoubt()
	last := page.last
	switch {
	case last.n > 0:
	case openMetrics && !r.ended:
		if len(page.lines) == 0 {
			return errorOf(ReasonParse, "line 1: data does not end with # EOF")
		}
		last = page.lines[len(page.lines)-1]
		last.why = "data does not end with # EOF"
	case r.page.Total == r.page.Bad && r.page.Bad > 0: // nothing on it is a metric
		return r.page.first
	default:
		return nil
	}
	r.damageAt(last)
	r.undoubt()
	return last.err()
}

// entries reads lines until one that cannot be read. It returns how many it has read, and why it cannot read the next one; nil: there is none.
func (r *reader) entries(lines []badLine, text []byte, openMetrics bool) (n int, err error) {
	var p textparse.Parser
	if openMetrics {
		p = textparse.NewOpenMetricsParser(text, labels.NewSymbolTable())
	} else {
		p = textparse.NewPromParser(text, labels.NewSymbolTable(), false)
	}
	for ; n < len(lines); n++ {
		if lines[n].why != "" && openMetrics { // its comments are errors
			return n, errors.New(lines[n].why)
		}
		entry, err := nextEntry(p)
		if err != nil {
			if openMetrics && errors.Is(err, io.EOF) && string(lines[n].text) == "# EOF" {
				r.ended = n == len(lines)-1
				return n + 1, nil
			}
			return n, err
		}
		if lines[n].why != "" {
			if err := r.bad(lines[n]); err != nil {
				return n, err
			}
			continue
		}
		switch entry {
		case textparse.EntryHelp:
			name, _ := p.Help()
			r.follow(familyOf(string(name)), true)
		case textparse.EntryType:
			name, _ := p.Type()
			r.follow(familyOf(string(name)), true)
		case textparse.EntrySeries:
			if err := r.series(p); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// nextEntry returns the parser's next entry. It turns a panic of the parser into an error.
func nextEntry(p textparse.Parser) (entry textparse.Entry, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("the parser cannot read it: %v", broken)
		}
	}()
	return p.Next()
}

// series counts the parser's current sample, and keeps it if it is wanted.
func (r *reader) series(p textparse.Parser) error {
	if err := r.count(); err != nil {
		return err
	}
	series, _, value := p.Series()
	name, _, _ := bytes.Cut(series, []byte("{"))
	if name = bytes.TrimRight(name, " \t"); len(name) == 0 { // the name is among the labels
		name = []byte(labelsOf(p).Get(model.MetricNameLabel))
	}
	wanted := r.wants(name)
	r.follow(familyOf(r.lastName), false)
	if !wanted {
		return nil
	}
	return r.add(labelsOf(p), value)
}

// A doubted line cannot be read, and the name on it need not be whole. It may belong to the family before it or behind it.
type doubted struct {
	name    string // on the line
	last    string // family before it
	comment bool   // it is a HELP or TYPE line, and so belongs to the family behind it
}

// mayBeOf reports whether the line may belong to a family: the name on it may be the beginning of one of its names.
func (d *doubted) mayBeOf(family string) bool {
	plain := func(name string) string { return strings.ReplaceAll(name, ":", "_") } // Python's client has a colon in OpenMetrics' comments alone
	name, family := plain(d.name), plain(family)
	return strings.HasPrefix(family, name) || family != "" && strings.HasPrefix(name, family)
}

// follow says that a line of a family has been read, and decides to which family a doubted line before it belongs.
func (r *reader) follow(family string, comment bool) {
	if d := r.doubt; d != nil {
		r.doubt = nil
		if !d.comment && d.mayBeOf(d.last) {
			r.damage(d.last)
		}
		if (d.comment || !comment) && d.mayBeOf(family) {
			r.damage(family)
		}
	}
	r.last = family
}

// bad counts a line that cannot be read.
func (r *reader) bad(line badLine) error {
	if r.page.first == nil {
		r.page.first = line.err()
	}
	if line.text[0] != '#' {
		if err := r.count(); err != nil {
			return err
		}
		r.page.Bad++
	}
	r.damageAt(line)
	if r.lines++; r.lines > maxBad {
		return errorOf(ReasonParse, "want a page with at most %d lines that cannot be read, got more; the first is %w", maxBad, r.page.first)
	}
	return nil
}

// damageAt leaves the family of a bad line out, and those that it may belong to.
func (r *reader) damageAt(bad badLine) {
	name := nameOn(bad.text)
	r.wants([]byte(name)) // this name alone may tell the engine
	r.damage(familyOf(name))
	r.undoubt() // there are two such lines, one behind the other
	r.doubt = &doubted{name, r.last, bad.text[0] == '#'}
}

// undoubt ends the page, or its part, behind a doubted line.
func (r *reader) undoubt() {
	if d := r.doubt; d != nil && d.mayBeOf(d.last) {
		r.damage(d.last)
	}
}

// nameOn returns the name on a line; "": there is none. It may be the beginning of one.
func nameOn(line []byte) string {
	s := string(line[:min(len(line), maxValueBytes)])
	if rest, ok := strings.CutPrefix(s, "#"); ok {
		words := strings.Fields(rest)
		if len(words) < 2 || words[0] != "HELP" && words[0] != "TYPE" && words[0] != "UNIT" {
			return ""
		}
		return words[1]
	}
	if quoted, ok := strings.CutPrefix(s, `{"`); ok {
		name, _, _ := strings.Cut(quoted, `"`)
		return name
	}
	if bare := bareName.FindStringSubmatch(s); bare != nil {
		return bare[1]
	}
	return "" // the line begins within another one, or its name is garbled
}

// bareName matches a name without quotes at the beginning of a line, and what may follow it.
var bareName = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)($|[{ \t])`)

// openName matches a comment with a quoted name that does not end on its line.
var openName = regexp.MustCompile(`^#[ \t]*(HELP|TYPE|UNIT)[ \t]+"([^"\\]|\\.)*$`)

// endsInQuotes reports whether a quoted value is not closed on its line. The formats escape a line end as \n, but the
// parser of 0.0.4 would continue on the next lines.
func endsInQuotes(line []byte) bool {
	inside := false
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '"':
			inside = !inside
		case line[i] == '\\' && inside:
			i++ // of an escape
		}
	}
	return inside
}

// parserSays returns the parser's error without the line, which the parser quotes in full.
func parserSays(err error) string {
	if errors.Is(err, io.EOF) {
		return "want text, not a byte 0"
	}
	says, _, _ := strings.Cut(err.Error(), " while parsing: ")
	return clip(says, 120)
}
