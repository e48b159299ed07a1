package outside

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// HoldFields fails unless the table under a heading of docs/reference/file-formats.md has exactly these fields, in their order.
// It returns the table's rows.
func HoldFields(t *testing.T, heading string, fields []string) [][]string {
	t.Helper()
	const page = "../../docs/reference/file-formats.md"
	rows, err := Fields(page, heading, "field")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range rows {
		documented = append(documented, row[0])
	}
	if diff := cmp.Diff(documented, fields); diff != "" {
		t.Errorf("%s, %s (-document +program):\n%s", page, heading, diff)
	}
	return rows
}
