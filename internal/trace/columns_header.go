package trace

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"replayd/internal/fault"
)

// shownNames is how many names of a file's columns an error lists.
const shownNames = 20

// A header has the names of a file's columns, or the keys of its first JSON object.
type header struct {
	names []string
	by    byte // separates cells; 0: JSON lines
}

// headers are the ways to read a first line. One of them has the columns, if any has.
func headers(line []byte) (all []header) {
	if first := bytes.TrimSpace(line); first[0] == '{' {
		return []header{{names: slices.Sorted(maps.Keys(keysOf(first)))}}
	}
	for _, by := range []byte(",\t;") {
		h := header{by: by}
		for rest, more := line, true; more; {
			var cell []byte
			var ok bool
			if cell, rest, more, ok = cut(rest, by); !ok {
				break
			}
			h.names = append(h.names, string(cell))
		}
		all = append(all, h)
	}
	// The one with most names is the file's: an error lists them.
	slices.SortStableFunc(all, func(a, b header) int { return len(b.names) - len(a.names) })
	return all
}

// place returns where the columns are that c names, and what the header lacks of them.
func (h header) place(c Columns) (at [cellCount]int, lacks []string) {
	for i, part := range c.parts()[:cellCount] {
		at[i] = slices.Index(h.names, *part.name)
		switch {
		case *part.name == "":
			at[i] = -1
		case at[i] < 0 && (h.by != 0 || i != sessionCell): // a JSON object may lack a key that others have
			lacks = append(lacks, fmt.Sprintf("%q (%s)", *part.name, part.key))
		case at[i] >= 0 && slices.Contains(h.names[at[i]+1:], *part.name):
			lacks = append(lacks, fmt.Sprintf("%q (%s) once", *part.name, part.key))
		}
	}
	return at, lacks
}

// shown lists the names for an error.
func (h header) shown() string {
	var list []string
	for _, name := range h.names[:min(len(h.names), shownNames)] {
		list = append(list, fault.Excerpt([]byte(name)))
	}
	text := strings.Join(list, ", ")
	if more := len(h.names) - shownNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// ofOthers reports whether a JSON object has no key for a prompt that Mooncake has, and a key that Mooncake does not have.
func (h header) ofOthers() bool {
	known := dialect{graph: true}.layout(0).keys
	return !slices.ContainsFunc(promptKinds[:], func(kind string) bool { return slices.Contains(h.names, kind) }) &&
		slices.ContainsFunc(h.names, func(name string) bool { return !slices.Contains(known, name) })
}

// detectTable sets the format and the layout if the first line shows a table that the options allow. It reports whether
// the line is a header and not a row.
func (p *pass) detectTable(line []byte, number int) (found, isHeader bool, err error) {
	candidates := p.options.candidates()
	if len(candidates) == 0 {
		return false, false, nil
	}
	all := headers(line)
	for _, t := range candidates {
		for _, h := range all {
			if at, lacks := h.place(t.columns); len(lacks) == 0 && bytes.Contains(line, []byte(t.mark)) {
				p.format, p.layout = t.format, h.layout(t.columns, at)
				return true, h.by != 0, nil
			}
		}
	}
	if p.options.Format == Auto {
		return false, false, nil
	}
	if all[0].by == 0 {
		o := object{}
		if wrong := o.read(line, "row"); wrong != nil {
			return false, false, fmt.Errorf("%s:%d: %w", p.file.name, number, wrong)
		}
	}
	_, lacks := all[0].place(candidates[len(candidates)-1].columns)
	want := "columns " + strings.Join(lacks, ", ")
	if p.options.Format == Named && !p.options.Columns.Given() {
		want = "columns that --columns or trace.columns names"
	}
	return false, false, fmt.Errorf("%s:%d: header: want %s, got %s", p.file.name, number, want, all[0].shown())
}

// layout returns how the rows below the header are read.
func (h header) layout(c Columns, at [cellCount]int) layout {
	r := &tableReader{columns: c, unit: units[c.Unit], by: h.by, count: len(h.names)}
	l := layout{decode: r.decode, unit: r.unit, rebased: true, tabs: h.by == '\t', columns: c}
	if h.by == 0 {
		l.decode, l.rebased = r.decodeJSON, false
	}
	r.places = slices.Repeat([]int{-1}, slices.Max(at[:])+1)
	for i, place := range at {
		if place >= 0 {
			r.places[place] = i
		}
	}
	if slices.Contains(h.names, azureImages) {
		l.warning = fmt.Sprintf("column %s is not read: images are not sent", azureImages)
	}
	return l
}

// columnsRead says how the columns were read, with the unit of the times if they are numbers.
func (l layout) columnsRead() string {
	c := l.columns
	switch {
	case l.unit == 0 || c.Timestamp == "":
		c.Unit = ""
	case c.Unit == "":
		c.Unit = "s"
	}
	return c.String()
}
