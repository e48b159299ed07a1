package outside

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Fields reads the tables under one heading of a page, up to the next heading, whose first column is called column. It
// returns the cells of each row, with the name in the first cell without its backticks. A name that occurs twice and an
// empty cell are errors.
func Fields(path, heading, column string) (rows [][]string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	section, first, code := "", "", false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		switch {
		case code:
		case strings.HasPrefix(line, "#"):
			section = line
		case section != heading:
		case !strings.HasPrefix(line, "|"):
			first = "" // the table has ended
		default:
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			name := strings.Trim(cells[0], "`")
			if first == "" {
				first = cells[0]
			}
			if first != column || name == cells[0] { // another table; the heading and the line under it
				continue
			}
			if slices.Contains(cells, "") {
				return nil, fmt.Errorf("%s: %s: want no empty cell, got %s", path, heading, line)
			}
			if slices.ContainsFunc(rows, func(row []string) bool { return row[0] == name }) {
				return nil, fmt.Errorf("%s: %s has %s twice", path, heading, name)
			}
			cells[0] = name
			rows = append(rows, cells)
		}
	}
	if rows == nil {
		return nil, fmt.Errorf("%s: want a table of a %s under %s, found none", path, column, heading)
	}
	return rows, nil
}

// Names returns the first cell of each row.
func Names(rows [][]string) (names []string) {
	for _, row := range rows {
		names = append(names, row[0])
	}
	return names
}
