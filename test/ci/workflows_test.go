//go:build real

package ci_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"replayd/test/machine"
	"replayd/test/outside"
)

const repository = "../.."

// lintWorkflows runs make suite NAME=lint-workflows over a copy of the workflows with a change.
func lintWorkflows(t *testing.T, file, was, is string) (said string, err error) {
	t.Helper()
	copied := t.TempDir()
	for _, folder := range []string{".github", "deploy/ci"} {
		if err := os.CopyFS(filepath.Join(copied, folder), os.DirFS(filepath.Join(repository, folder))); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(copied, file))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), was) {
		t.Fatalf("%s: want %q in it", file, was)
	}
	outside.Write(t, copied, file, strings.ReplaceAll(string(text), was, is))
	c := exec.CommandContext(t.Context(), "make", "-C", repository, "suite", "NAME=lint-workflows", "WORKFLOWS="+copied)
	out, err := c.CombinedOutput()
	return string(out), err
}

// The workflows are clean, and each check that the repository relies on can fail.
func TestLintWorkflows(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		machine.Lacks(t, "python3", err)
	}
	const ci, release = ".github/workflows/ci.yml", ".github/workflows/release.yml"
	if said, err := lintWorkflows(t, ci, "name: CI", "name: CI"); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for _, c := range []struct{ file, was, is, finding string }{
		{release, "needs: build", "needs: builds", `needs job "builds" which does not exist`},
		{ci, "@3d3c42e5aac5ba805825da76410c181273ba90b1", "@v7", "unpinned-uses"},
		{ci, "permissions: {}", "permissions: write-all", "excessive-permissions"},
		{release, "persist-credentials: false", "persist-credentials: true", "artipacked"},
		{".github/dependabot.yml", "cooldown: {default-days: 7}", "cooldown: {default-days: 1}", "dependabot-cooldown"},
		{"deploy/ci/github-actions.yml", "@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f", "@v7", "unpinned-uses"},
	} {
		if said, err := lintWorkflows(t, c.file, c.was, c.is); err == nil || !strings.Contains(said, c.finding) {
			t.Errorf("%s: %s: want %s found, got %v: %s", c.file, c.is, c.finding, err, said)
		}
	}
}
