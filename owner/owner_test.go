package owner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// example is what an owner would write.
const example = `module: github.com/example/replayd
repository: https://github.com/example/replayd
image: ghcr.io/example/replayd
charts: oci://ghcr.io/example/charts
runbookBase: ""
maintainer: "The Example's Authors <replayd@example.com>"
codeowners: "@example @example/team"
`

// Each fault is said with its field, and all of them at once.
func TestRead(t *testing.T) {
	for _, c := range []struct{ old, now, want string }{
		{"", "", ""},
		{"repository: https://github.com/example/replayd", `repository: ""`, ""},
		{`runbookBase: ""`, "runbookBase: http://wiki.example:8080/replayd", ""},
		{"module: github.com/example/replayd", "module: replayd", `OWNER.yaml: module: want a path that go install finds, such as github.com/OWNER/replayd, since there is a repository, got "replayd"`},
		{"module: github.com/example/replayd", "module: https://github.com/example", `OWNER.yaml: module: want a module path such as github.com/OWNER/replayd, got "https://github.com/example"` + "\n" +
			`OWNER.yaml: module: want a path that go install finds, such as github.com/OWNER/replayd, since there is a repository, got "https://github.com/example"`},
		{"repository: https://github.com/example/replayd", "repository: https://github.com/example/", `OWNER.yaml: repository: want "" or https://HOST/PATH without a / at its end, got "https://github.com/example/"`},
		{"repository: https://github.com/example/replayd", "repository: http://github.com/example", `OWNER.yaml: repository: want "" or https://HOST/PATH without a / at its end, got "http://github.com/example"`},
		{"image: ghcr.io/example/replayd", "image: ghcr.io/example/replayd:1", `OWNER.yaml: image: want a name without a tag, such as ghcr.io/OWNER/replayd, got "ghcr.io/example/replayd:1"`},
		{"charts: oci://ghcr.io/example/charts", "charts: https://example.com", `OWNER.yaml: charts: want "" or oci://HOST/PATH, got "https://example.com"`},
		{`runbookBase: ""`, "runbookBase: https://a.example/b#c", `OWNER.yaml: runbookBase: want "" or the address of a page, without # and a / at its end, got "https://a.example/b#c"`},
		{`maintainer: "The Example's Authors <replayd@example.com>"`, "maintainer: replayd@example.com", `OWNER.yaml: maintainer: want "" or "Name <mail>", got "replayd@example.com"`},
		{`codeowners: "@example @example/team"`, "codeowners: example", `OWNER.yaml: codeowners: want "" or names such as @OWNER, got "example"`},
		{"image: ", "picture: ", "OWNER.yaml: yaml: unmarshal errors:\n  line 3: field picture not found in type owner.Owner"},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, File), strings.Replace(example, c.old, c.now, 1))
		got := ""
		if _, err := Read(dir); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: want\n%s\ngot\n%s", c.now, c.want, got)
		}
	}
	if _, err := Read(t.TempDir()); err == nil {
		t.Error("want an error without a file")
	}
}

// Each file agrees with OWNER.yaml.
func TestFilesAgree(t *testing.T) {
	o, err := Read("..")
	if err != nil {
		t.Fatal(err)
	}
	changed, err := o.Changes("..")
	if err != nil {
		t.Fatal(err)
	}
	for path := range changed {
		t.Errorf("%s does not agree with %s: make owner", path, File)
	}
}
