package scrape

import (
	"bytes"
	"errors"
	"io"
	"iter"
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
	return fault(ReasonParse, "line %d: %s, got %q", b.n, b.why, clip(string(b.text[:min(len(b.text), 200)]), 80))
}

// textLines yields the non-blank lines of a page with their numbers, counted from 1. It trims blanks and carriage
// returns: the parser of 0.0.4 takes leading blanks for a part of the name and rejects a carriage return. whole is
// false for a last line without a line end.
func textLines(body []byte) iter.Seq2[badLine, bool] {
	return func(yield func(line badLine, whole bool) bool) {
		for n := 1; len(body) > 0; n++ {
			text, rest, whole := bytes.Cut(body, []byte("\n"))
			body = rest
			if text = bytes.Trim(text, " \t\r"); len(text) > 0 && !yield(badLine{n: n, text: text}, whole) {
				return
			}
		}
	}
}

// tidy copies the lines for the parser. Each line is one entry of the parser, so that errors can be given a line
// number, which the parser does not report. Lines over the bounds are left out. The copy ends before a line that has no
// line end or an unclosed quote; tidy returns that line as stop.
func (r *reader) tidy(body []byte, openMetrics bool) (clean []byte, stop badLine) {
	clean = make([]byte, 0, len(body)+2) // room for the line end that the parser appends
	for line, whole := range textLines(body) {
		switch {
		case !whole && (!openMetrics || string(line.text) != "# EOF"):
			line.why = "the page ends in mid-line, want a line end"
			return clean, line
		case line.text[0] != '#' && endsInQuotes(line.text):
			line.why = "want the quotes closed"
			return clean, line
		case len(line.text) <= maxLineBytes:
			clean = append(append(clean, line.text...), '\n')
		case line.text[0] != '#':
			r.page.Total++ // the next call of count checks the bound
			if name, _ := nameOn(line.text); name == "" || r.wants([]byte(name)) {
				r.page.Skipped++
			}
		}
	}
	return clean, badLine{}
}

// text reads a page in one of the text formats.
func (r *reader) text(body []byte, openMetrics bool) error {
	clean, stop := r.tidy(body, openMetrics)
	lines := bytes.Count(clean, []byte("\n"))
	var p textparse.Parser
	if openMetrics {
		p = textparse.NewOpenMetricsParser(clean, labels.NewSymbolTable())
	} else {
		p = textparse.NewPromParser(clean, labels.NewSymbolTable(), false)
	}
	last := "" // the family of the latest line
	for entries := 0; ; entries++ {
		entry, _, err := next(p)
		end := errors.Is(err, io.EOF)
		all := entries == lines || openMetrics && end && entries == lines-1 // # EOF is a line but no entry
		switch {
		case err == nil:
		case all && stop.n != 0:
			r.dropAt(stop, last)
			return stop.err()
		case all && end:
			return nil
		default:
			bad := lineOf(body, entries)
			bad.why = parserSays(err)
			r.dropAt(bad, last)
			return bad.err()
		}
		switch entry {
		case textparse.EntryHelp:
			name, _ := p.Help()
			last = familyOf(string(name))
		case textparse.EntryType:
			name, _ := p.Type()
			last = familyOf(string(name))
		case textparse.EntrySeries:
			if err := r.series(p, &last); err != nil {
				return err
			}
		}
	}
}

// series counts the parser's current sample, keeps it if it is wanted, and sets last to its family.
func (r *reader) series(p textparse.Parser, last *string) error {
	if err := r.count(); err != nil {
		return err
	}
	series, _, value := p.Series()
	name, _, _ := bytes.Cut(series, []byte("{"))
	if name = bytes.TrimRight(name, " \t"); len(name) == 0 { // the name is among the labels
		name = []byte(labelsOf(p).Get(model.MetricNameLabel))
	}
	wanted := r.wants(name)
	if *last = familyOf(r.lastName); !wanted {
		return nil
	}
	return r.add(labelsOf(p), value, nil)
}

// dropAt removes the family of a bad line. If the name on the line may be incomplete, the line may belong to the
// previous family, which is removed too.
func (r *reader) dropAt(bad badLine, last string) {
	name, whole := nameOn(bad.text)
	r.drop(familyOf(name))
	if !whole {
		r.drop(last)
	}
}

// lineOf returns the line after the first entries lines, or the last line if there are no more. It does not count lines
// over the bounds.
func lineOf(body []byte, entries int) badLine {
	at := badLine{n: 1}
	for line := range textLines(body) {
		if len(line.text) > maxLineBytes {
			continue
		}
		at = line
		if entries--; entries < 0 {
			break
		}
	}
	return at
}

// nameOn returns the name on a line, and whether it is complete: a brace or a blank follows it.
func nameOn(line []byte) (name string, whole bool) {
	s := string(line[:min(len(line), maxValueBytes)])
	if rest, ok := strings.CutPrefix(s, "#"); ok {
		words := strings.Fields(rest)
		if len(words) < 2 || words[0] != "HELP" && words[0] != "TYPE" && words[0] != "UNIT" {
			return "", false
		}
		return words[1], len(words) > 2
	}
	end := strings.IndexFunc(s, func(c rune) bool {
		return c != '_' && c != ':' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
	if end < 0 {
		return s, false
	}
	return s[:end], end > 0 && strings.IndexByte("{ \t", s[end]) >= 0
}

// endsInQuotes reports whether a quoted value is not closed on its line. The formats escape a line end as \n, but the
// parser of 0.0.4 would continue on the next lines.
func endsInQuotes(line []byte) bool {
	for {
		open := bytes.IndexByte(line, '"')
		if open < 0 {
			return false
		}
		line = line[open+1:]
		for {
			i := bytes.IndexAny(line, `"\`)
			if i < 0 || line[i] == '\\' && i+1 == len(line) {
				return true
			}
			if line[i] == '"' {
				line = line[i+1:]
				break
			}
			line = line[i+2:]
		}
	}
}

// parserSays returns the parser's error without the line, which the parser quotes in full.
func parserSays(err error) string {
	if errors.Is(err, io.EOF) {
		return "want text, not a byte 0"
	}
	says, _, _ := strings.Cut(err.Error(), " while parsing: ")
	return clip(says, 120)
}
