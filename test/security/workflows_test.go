package security_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"replayd/test/outside"
)

// Only the repository of the constant publishes: no fork does, and while the constant is empty none at all.
func TestOwned(t *testing.T) {
	for _, c := range []struct {
		owner, in string
		ok        bool
	}{
		{"https://github.com/someone/replayd", "someone/replayd", true},
		{"https://github.com/someone/replayd", "another/replayd", false},
		{"https://github.com/someone/replayd", "someone/replayd2", false},
		{"", "someone/replayd", false},
	} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(root, ".ci/owned"))
		text := "package reference\n\nconst Repository = \"" + c.owner + "\"\n"
		file := outside.Write(t, t.TempDir(), "reference.go", text)
		cmd.Env = append(os.Environ(), "GITHUB_REPOSITORY="+c.in, "REFERENCE="+file)
		said, err := cmd.CombinedOutput()
		if (err == nil) != c.ok || !c.ok && !strings.Contains(string(said), "Repository: want https://github.com/"+c.in) {
			t.Errorf("%s in %s: want published %v, got %v: %s", c.owner, c.in, c.ok, err, said)
		}
	}
}
