package security_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"replayd/test/outside"
)

// Only the repository that OWNER.yaml names publishes: no fork does, and without an owner none at all.
func TestOwned(t *testing.T) {
	for _, c := range []struct {
		owner, in string
		ok        bool
	}{
		{`repository: https://github.com/someone/replayd`, "someone/replayd", true},
		{`repository: "https://github.com/someone/replayd" # the public one`, "someone/replayd", true},
		{`repository: https://github.com/someone/replayd`, "another/replayd", false},
		{`repository: https://github.com/someone/replayd`, "someone/replayd2", false},
		{`repository: ""    # https://github.com/someone/replayd`, "someone/replayd", false},
		{`module: replayd`, "someone/replayd", false},
	} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(root, ".ci/owned"))
		cmd.Env = append(os.Environ(), "GITHUB_REPOSITORY="+c.in, "OWNER_FILE="+outside.Write(t, t.TempDir(), "OWNER.yaml", "module: replayd\n"+c.owner+"\nimage: replayd\n"))
		if said, err := cmd.CombinedOutput(); (err == nil) != c.ok || !c.ok && !strings.Contains(string(said), "OWNER.yaml: repository: want https://github.com/"+c.in) {
			t.Errorf("%s in %s: want published %v, got %v: %s", c.owner, c.in, c.ok, err, said)
		}
	}
}
