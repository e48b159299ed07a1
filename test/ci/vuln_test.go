//go:build real

package ci_test

import (
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"replayd/test/outside"
)

// database writes a database of vulnerabilities in the form of https://go.dev/doc/security/vuln/database, and returns its address.
func database(t *testing.T, modules, entry string) string {
	t.Helper()
	dir := t.TempDir()
	for _, folder := range []string{"index", "ID"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	outside.Write(t, dir, "index/db.json", `{"modified":"2026-01-01T00:00:00Z"}`)
	outside.Write(t, dir, "index/modules.json", modules)
	outside.Write(t, dir, "index/vulns.json", `[]`)
	outside.Write(t, dir, "ID/GO-2026-0001.json", entry)
	return (&url.URL{Scheme: "file", Path: dir}).String()
}

// A check that was not made never passes for one: not on GitHub, where there is a network, and not elsewhere. A
// vulnerability that the binary calls fails, and none passes.
func TestVuln(t *testing.T) {
	const entry = `{"schema_version":"1.3.1","id":"GO-2026-0001","modified":"2026-01-01T00:00:00Z","published":"2026-01-01T00:00:00Z",
		"summary":"made up","details":"made up","affected":[{"package":{"name":"github.com/prometheus/client_golang","ecosystem":"Go"},
		"ranges":[{"type":"SEMVER","events":[{"introduced":"0"}]}],
		"ecosystem_specific":{"imports":[{"path":"github.com/prometheus/client_golang/prometheus","symbols":["NewDesc"]}]}}],
		"database_specific":{"url":"https://pkg.go.dev/vuln/GO-2026-0001"}}`
	const modules = `[{"path":"github.com/prometheus/client_golang","vulns":[{"id":"GO-2026-0001","modified":"2026-01-01T00:00:00Z"}]}]`
	for _, c := range []struct {
		name, db, github string
		code             int
		says             string
	}{
		{"no database, at a desk", "http://127.0.0.1:9", "", 3, "NOT CHECKED for vulnerabilities: their database could not be had"},
		{"no database, on GitHub", "http://127.0.0.1:9", "true", 1, "on GitHub this is a failure"},
		{"none", database(t, "[]", "{}"), "true", 0, "No vulnerabilities found"},
		{"one", database(t, modules, entry), "", 1, "GO-2026-0001"},
	} {
		cmd := exec.CommandContext(t.Context(), "../../tools/vuln")
		cmd.Env = append(os.Environ(), "VULN_DB="+c.db, "GITHUB_ACTIONS="+c.github)
		out, err := cmd.CombinedOutput()
		code := 0
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			code = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if code != c.code || !strings.Contains(string(out), c.says) {
			t.Errorf("%s: want exit code %d and %q, got %d and %s", c.name, c.code, c.says, code, out)
		}
	}
}
