package owner

import (
	"net/mail"
	"path"
	"regexp"
	"strings"
)

var modulePattern = regexp.MustCompile(`(?m)^module (\S+)$`)

// modules are the places of Go's module path, which was another one before.
func (o Owner) modules(before string) []place {
	old := regexp.QuoteMeta(before)
	// The folders keep texts such as the user agent "replayd/1.0" out.
	inCode := regexp.MustCompile(`"` + old + `/((?:alerts|bench|cmd|dashboards|deploy|docs|internal|owner|test|tools)/|owner")`)
	inModules := regexp.MustCompile(`(?m)(^|[ \t])` + old + `(/\S+)?( |$)`)
	return []place{
		{"**/*.go", func(_, text string) (string, error) {
			return inCode.ReplaceAllString(text, `"`+o.Module+`/$1`), nil
		}},
		{"**/go.mod", func(p, text string) (string, error) {
			module := path.Join(o.Module, path.Dir(p))
			text = modulePattern.ReplaceAllString(text, "module "+module)
			return inModules.ReplaceAllString(text, `${1}`+o.Module+`$2$3`), nil
		}},
		replaced(".golangci.yml", `(module-path: |pkg: |[\[ ])`+old+`(/internal|/cmd|\n)`, `${1}`+o.Module+`$2`),
	}
}

// links are the places of addresses of documents.
func (o Owner) links(all instances) []place {
	href := ""
	documents := []string{}
	if o.Repository != "" {
		href = ` href="` + o.document("$1") + `"`
		documents = append(documents, `<a href="`+o.document("docs/README.md")+`">Documents</a>`)
	}
	return []place{
		{"alerts/*.yaml", func(_, text string) (string, error) { return o.linkRules(text, all) }},
		{"alerts/tests/*_test.yaml", func(_, text string) (string, error) { return o.linkTests(text) }},
		replaced("dashboards/build/grafana.go", `(?m)^(\trunbook += )".*"`, `${1}"`+o.Runbook()+`"`),
		replaced("dashboards/build/grafana.go", `(?m)^(\tcorrelationPage += )".*"`, `${1}"`+o.document("docs/explanation/correlation.md")+`"`),
		replaced("internal/web/runbook.html", `<a(?: href="[^"]*")? title="([^"]*)">`, `<a`+href+` title="$1">`),
		lines("internal/web/runbook.html", `^<a href="[^"]*">Documents</a>$`, `^<!-- pages -->$`, documents...),
	}
}

// names are the places of the image, and of what tells where a package is from.
func (o Owner) names() []place {
	var image, chart, unit []string
	if r := o.Repository; r != "" {
		const label = `      org.opencontainers.image.`
		image = []string{label + `url="` + r + `" \`, label + `source="` + r + `" \`, label + `documentation="` + o.document("README.md") + `" \`}
		chart = []string{"home: " + r, "sources: [" + r + "]"}
		unit = []string{"Documentation=" + r}
	}
	if o.Maintainer != "" {
		address, _ := mail.ParseAddress(o.Maintainer) // checked
		chart = append(chart, "maintainers: [{name: "+quoted(address.Name)+", email: "+quoted(address.Address)+"}]")
	}
	return []place{
		lines("Dockerfile", `image\.(url|source|documentation)=`, `image\.description=`, image...),
		lines("deploy/helm/replayd/Chart.yaml", `^(home|sources|maintainers):`, `^kubeVersion:`, chart...),
		lines("deploy/systemd/replayd.service", `^Documentation=`, `^Description=`, unit...),
		replaced("deploy/helm/replayd/values.yaml", `(?m)^(  repository: )".*?"`, `${1}"`+o.publishedImage()+`"`),
		replaced("deploy/helm/replayd/README.md", "(?m)^(\\| `image\\.repository` \\| )`[^`]*`", "${1}`"+o.defaultImage()+"`"),
		replaced("Makefile", `(?m)^(IMAGE +\?= ).*`, `${1}`+o.Image),
	}
}

// defaultImage is the default of the chart's image as its README has it.
func (o Owner) defaultImage() string {
	if image := o.publishedImage(); image != "" {
		return image
	}
	return `""`
}

func quoted(s string) string {
	return `"` + strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), `"`, `\"`) + `"`
}
