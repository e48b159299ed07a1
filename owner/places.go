package owner

import (
	"net/mail"
	"path"
	"regexp"
	"strings"
)

// A place is a text in some files that depends on the owner: what matches the pattern is replaced. It has to be in one
// of them.
type place struct {
	files   string // a pattern of their paths: * is any name in one folder, **/ any folders
	pattern string
	by      string // as regexp.ReplaceAllString has it
}

func (p place) in(file string) bool {
	pattern := p.files
	if rest, anywhere := strings.CutPrefix(pattern, "**/"); anywhere {
		pattern, file = rest, path.Base(file)
	}
	good, _ := path.Match(pattern, file) // the patterns are those below
	return good
}

// places has all of them but the links of alerts. The module path was another one before.
func (o Owner) places(module string) []place {
	const label = `      org.opencontainers.image.`
	var image, chart, unit string
	if r := o.Repository; r != "" {
		image = label + `url="` + r + "\" \\\n" + label + `source="` + r + "\" \\\n" +
			label + `documentation="` + o.document("README.md") + "\" \\\n"
		chart = "home: " + r + "\nsources: [" + r + "]\n"
		unit = "Documentation=" + r + "\n"
	}
	if address, err := mail.ParseAddress(o.Maintainer); err == nil {
		chart += "maintainers: [{name: " + quoted(address.Name) + ", email: " + quoted(address.Address) + "}]\n"
	}
	published, old := "", regexp.QuoteMeta(module)
	if strings.Contains(o.Image, "/") { // in a registry
		published = o.Image
	}
	shown := published
	if shown == "" {
		shown = `""`
	}
	// They keep texts such as the user agent "replayd/1.0" out.
	const folders = `alerts|bench|cmd|dashboards|deploy|docs|internal|owner|test|tools`
	correlation := o.document("docs/explanation/correlation.md")
	return []place{
		{"**/*.go", `"` + old + `/((?:` + folders + `)/|owner")`, `"` + o.Module + `/$1`},
		{"**/go.mod", `(?m)(^|[ \t])` + old + `(/\S+)?( |$)`, `${1}` + o.Module + `$2$3`},
		{".golangci.yml", `(module-path: |pkg: |[\[ ])` + old + `(/internal|/cmd|\n)`, `${1}` + o.Module + `$2`},

		{"dashboards/build/grafana.go", `(?m)^(\trunbook += )".*"`, `${1}"` + o.Runbook() + `"`},
		{"dashboards/build/grafana.go", `(?m)^(\tcorrelationPage += )".*"`, `${1}"` + correlation + `"`},
		{"dashboards/build/grafana.go", `(?m)^(\tanswersPage += )".*"`, `${1}"` + o.document("docs/reference/answers.md") + `"`},
		{"docs/reference/reference.go", `(?m)^(const Repository = )".*"`, `${1}"` + o.Repository + `"`},

		{"Dockerfile", `(?m)(^.*image\.description=.*\n)(?:.*image\.(?:url|source|documentation)=.*\n)*`, `${1}` + image},
		{"deploy/helm/replayd/Chart.yaml", `(?m)^(kubeVersion:.*\n)(?:(?:home|sources|maintainers):.*\n)*`, `${1}` + chart},
		{"deploy/systemd/replayd.service", `(?m)^(Description=.*\n)(?:Documentation=.*\n)*`, `${1}` + unit},
		{"deploy/helm/replayd/values.yaml", `(?m)^(  repository: )".*?"`, `${1}"` + published + `"`},
		{"deploy/helm/replayd/README.md", "(?m)^(\\| `image\\.repository` \\| )`[^`]*`", "${1}`" + shown + "`"},
		{"Makefile", `(?m)^(IMAGE +\?= ).*`, `${1}` + o.Image},
	}
}

func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `$$`).Replace(s) + `"`
}
