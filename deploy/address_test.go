package deploy_test

import (
	"os"
	"regexp"
	"testing"

	"replayd/docs/reference"
)

// Where this project is published it is so under one address: the Go constant, the chart and the mixin agree, and the
// image is in a registry.
func TestPublicAddress(t *testing.T) {
	runbook := reference.Document("docs/reference/alerts.md")
	for _, c := range []struct{ file, pattern, want string }{
		{"helm/replayd/Chart.yaml", `(?m)^home: (\S+)$`, reference.Repository},
		{"helm/replayd/Chart.yaml", `(?m)^sources: \[(\S+)\]$`, reference.Repository},
		{"helm/replayd/values.yaml", `(?m)^  runbookURL: "([^"]*)"`, runbook},
		{"../mixin/config.libsonnet", `(?m)^    runbookBase: '([^']*)'`, runbook},
	} {
		text, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if m := regexp.MustCompile(c.pattern).FindStringSubmatch(string(text)); m != nil {
			got = m[1]
		}
		if got != c.want {
			t.Errorf("%s: want %q at %s, as docs/reference/reference.go has it, got %q", c.file, c.want, c.pattern, got)
		}
	}
	values, err := os.ReadFile("helm/replayd/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	image := regexp.MustCompile(`(?m)^  repository: "([^"]*)"`).FindSubmatch(values)
	if len(image) != 2 || (len(image[1]) > 0) != (reference.Repository != "") {
		t.Errorf("helm/replayd/values.yaml: want an image.repository where the project is published, got %q", image)
	}
}
