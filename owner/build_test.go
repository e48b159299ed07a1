//go:build real

package owner

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// With another owner everything is built, and the tests of what has links and names pass. Without it each byte is as before. The
// commands are those of the Makefile.
func TestAnotherOwner(t *testing.T) {
	dir := copyTree(t)
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
	}
	write(t, filepath.Join(dir, File), example)
	run("make", "owner")
	run("go", "build", "./...")
	run("go", "vet", "-tags", "real", "./...")
	run("go", "test", "./alerts", "./dashboards/...", "./deploy", "./docs", "./internal/live", "./internal/web", "./owner")

	was, err := os.ReadFile("../" + File)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, File), string(was))
	run("make", "owner")
	if out, err := exec.CommandContext(t.Context(), "diff", "-r", "--exclude=.git", "--exclude=.cache", "--exclude=bin", "--exclude=artifacts",
		"--exclude=node_modules", "..", dir).CombinedOutput(); err != nil {
		t.Errorf("want the tree as it was, got %v\n%.2000s", err, out)
	}
}
