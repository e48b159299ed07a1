package chunk

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/measure"
	"replayd/test/outside"
)

var update = flag.Bool("update", false, "rewrite the tables of the page")

const answersPage = "../../../../docs/reference/answers.md"

// The tables and the ignored names in docs/reference/answers.md are those of this package.
func TestPageHasTheTable(t *testing.T) {
	text, err := os.ReadFile(answersPage)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, kind := range []string{contents, ends, errs, usages} {
		rows, heading := "", "part | is"
		for _, m := range meanings {
			if m.kind == kind {
				rows += fmt.Sprintf("| %s | %s | %s |\n", inCode(m.part), m.means, m.source)
			}
		}
		if kind == ends {
			heading = "finish reason | means"
		}
		section := map[string]string{contents: "Content", ends: "Ends", errs: "Errors", usages: "Usage"}[kind]
		old := regexp.MustCompile(`(?s)(\n## ` + section + `\n.*?\n\| ` + regexp.QuoteMeta(heading) +
			` \| sent by \|\n\|---\|---\|---\|\n)(?:\|[^\n]*\n)*`)
		if !old.MatchString(page) {
			t.Fatalf("want a table under ## %s that begins with | %s | sent by |", section, heading)
		}
		page = old.ReplaceAllString(page, "${1}"+strings.ReplaceAll(rows, "$", "$$"))
	}
	last := "and are not counted:\n"
	prose, _, _ := strings.Cut(page, last)
	names := strings.Fields("`" + strings.Join(slices.Sorted(maps.Keys(ignored)), "`, `") + "`")
	for line := range slices.Chunk(names, 6) {
		last += "\n" + strings.Join(line, " ")
	}
	page = prose + last + "\n"
	if *update {
		if err := os.WriteFile(answersPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(text), page); diff != "" {
		t.Errorf("docs/reference/answers.md and the table (-page +table); -update rewrites the page:\n%s", diff)
	}
}

// inCode sets the names of a part in backticks.
func inCode(part string) string {
	pieces := strings.Split(part, ", ")
	for i, p := range pieces {
		name, rest, _ := strings.Cut(p, " ")
		switch {
		case rest == "" || strings.HasPrefix(p, `"`):
			pieces[i] = "`" + p + "`"
		case strings.ContainsAny(name, "[_"):
			pieces[i] = "`" + name + "` " + rest
		}
	}
	return strings.Join(pieces, ", ")
}

// The page has each usage rule.
func TestPageHasTheRules(t *testing.T) {
	rows, err := outside.Fields(answersPage, "## Usage", "rule")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range rows {
		documented = append(documented, row[0])
	}
	if diff := cmp.Diff(documented, measure.UsageRuleNames()); diff != "" {
		t.Errorf("docs/reference/answers.md, ## Usage (-document +rules):\n%s", diff)
	}
}
