package outside

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// A Documented series is a row of docs/reference/metrics.md.
type Documented struct {
	Type   string
	Labels []string // sorted
}

// Tables reads the rows about replayd's series under one heading of docs/reference/metrics.md. The first cell of a table's
// heading, "series" or "figure", selects labels of common that all its rows have.
func Tables(path, heading string, common map[string][]string) (map[string]Documented, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	rows := map[string]Documented{}
	section, first := "", ""
	for line := range strings.Lines(string(text)) {
		if h, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
			section = h
		}
		if section != heading || !strings.HasPrefix(line, "|") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if _, ok := common[cells[0]]; ok {
			first = cells[0]
		}
		name := strings.Trim(cells[0], "`")
		if !strings.HasPrefix(name, "replayd_") {
			continue
		}
		if len(cells) != 5 || cells[2] == "" || cells[4] == "" {
			return nil, fmt.Errorf("%s: want series, type, unit, labels and meaning, got %s", path, line)
		}
		if _, twice := rows[name]; twice {
			return nil, fmt.Errorf("%s has %s twice", path, name)
		}
		d := Documented{Type: cells[1], Labels: slices.Clone(common[first])}
		for label := range strings.SplitSeq(cells[3], ",") {
			if label = strings.Trim(label, " `"); label != "" {
				d.Labels = append(d.Labels, label)
			}
		}
		slices.Sort(d.Labels)
		rows[name] = d
	}
	return rows, nil
}

// Series returns replayd's series on a page in the form of the document.
func (p Page) Series() map[string]Documented {
	shown := map[string]Documented{}
	for name, family := range p {
		if !strings.HasPrefix(name, "replayd_") {
			continue
		}
		d := Documented{Type: strings.ToLower(family.GetType().String())}
		for _, l := range family.GetMetric()[0].GetLabel() {
			d.Labels = append(d.Labels, l.GetName())
		}
		slices.Sort(d.Labels)
		shown[name] = d
	}
	return shown
}
