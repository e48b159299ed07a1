//go:build real && release

package kubernetes_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// released returns the one file of the release with this pattern.
func released(t *testing.T, pattern string) string {
	t.Helper()
	dist := os.Getenv("RELEASE_DIST")
	if dist == "" {
		dist = filepath.Join(repository, "dist")
	}
	names, err := filepath.Glob(filepath.Join(dist, pattern))
	if err != nil || len(names) != 1 {
		t.Fatalf("want one %s in %s, got %v, %v; `make release` makes it", pattern, dist, names, err)
	}
	return names[0]
}

var appVersion = regexp.MustCompile(`(?m)^appVersion: (\S+)$`)

// The chart's package renders what its folder renders, but for the version of replayd, and holds to the same standards.
func TestReleasedChart(t *testing.T) {
	pack := released(t, "replayd-[0-9]*.tgz")
	version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(released(t, "replayd-*.oci.tar")), "replayd-"), ".oci.tar")
	was := appVersion.FindStringSubmatch(read(t, filepath.Join(chart, "Chart.yaml")))
	said, told, err := helm(t, "show", "chart", pack)
	if err != nil {
		t.Fatalf("%v: %s", err, told)
	}
	is := appVersion.FindStringSubmatch(said)
	if was == nil || is == nil || strings.Trim(is[1], `"'`) != version {
		t.Fatalf("want appVersion %s, got %v", version, is)
	}
	for _, mode := range modes {
		for name, values := range map[string][]string{"plain": plain(mode), "full": full(mode)} {
			t.Run(mode+"/"+name, func(t *testing.T) {
				got := render(t, pack, values...)
				hold(t, got)
				want := render(t, chart, values...)
				tag := strings.ReplaceAll(version, "+", "-")
				same := func(text string) string { // without the versions of replayd
					for _, v := range []string{version, tag, strings.Trim(was[1], `"'`)} {
						text = strings.ReplaceAll(text, v, "VERSION")
					}
					return text
				}
				if same(got) != same(want) {
					t.Errorf("the package renders other manifests than the folder")
				}
			})
		}
	}
}

// The rendered manifests need no helm: they hold to the schemas and to the restricted Pod Security Standard as they are.
func TestReleasedManifests(t *testing.T) {
	hold(t, read(t, released(t, "replayd-*.kubernetes.yaml")))
}
