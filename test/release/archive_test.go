//go:build real && release

package release_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

// answered is the line of a run's table that counts the requests that ended well.
var answered = regexp.MustCompile(`(?m)^ok +[1-9]`)

// A laptop, from the archive alone: unpack it, change the address, and the daemon has the first figure; or one command
// without a configuration.
func TestLaptop(t *testing.T) {
	began := time.Now()
	dir := unpack(t, at("replayd-"+version+"."+platform+".tar.gz"))
	binary := filepath.Join(dir, "replayd")
	said, err := exec.CommandContext(t.Context(), binary, "version").CombinedOutput()
	if err != nil || !strings.Contains(string(said), version) {
		t.Fatalf("want version %s, got %s, %v", version, said, err)
	}
	for _, name := range []string{"LICENSE", "NOTICE", "README.md", "CHANGELOG.md", "replayd.service", "prometheus.yml", "alerts/service.yaml", "dashboards/canary.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("want it in the archive: %v", err)
		}
	}
	server := outside.Address(t)
	engine := outside.Start(t, filepath.Join(t.TempDir(), "sim.out"), binary, "sim", "--web.listen-address", server)
	engine.Ready(t, http.DefaultClient, "http://"+server+"/health")

	run := exec.CommandContext(t.Context(), binary, "run", filepath.Join(dir, "sample.jsonl"), "--url", "http://"+server, "--duration", "3s")
	run.Dir = t.TempDir()
	if said, err := run.CombinedOutput(); err != nil || !answered.Match(said) {
		t.Errorf("replayd run: want requests that ended well, got %v\n%s", err, said)
	}
	t.Logf("the first figures of a run after %.1f s", time.Since(began).Seconds())

	listen := outside.Address(t)
	configuration := filepath.Join(dir, "replayd.example.yaml")
	point(t, configuration, server)
	check := exec.CommandContext(t.Context(), binary, "check-config", "replayd.example.yaml")
	check.Dir = dir
	if said, err := check.CombinedOutput(); err != nil {
		t.Fatalf("check-config: %v\n%s", err, said)
	}
	t.Chdir(dir) // paths in the configuration are relative to the working directory
	started := time.Now()
	p := outside.Start(t, filepath.Join(t.TempDir(), "replayd.out"), binary, "serve", "--config", "replayd.example.yaml", "--web.listen-address", listen)
	p.Ready(t, http.DefaultClient, "http://"+listen+"/-/ready")
	firstAt(t, nil, "http://"+listen)
	t.Logf("the first figure of a daemon after %.1f s", time.Since(started).Seconds())
	p.Term(t, 40*time.Second)
}
