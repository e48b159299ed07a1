//go:build real && release

package release_test

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"replayd/test/outside"
)

// emulators are the programs of Debian's package qemu-user for the processors of a release's archives.
var emulators = map[string]string{
	"amd64": "qemu-x86_64", "arm64": "qemu-aarch64", "ppc64le": "qemu-ppc64le", "riscv64": "qemu-riscv64", "s390x": "qemu-s390x",
}

// The binary for another processor replays the sample: it reads the trace, sends the requests and measures the answers.
func TestOtherProcessors(t *testing.T) {
	archives, err := filepath.Glob(at("replayd-" + version + ".linux-*.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(unpack(t, at("replayd-"+version+"."+platform+".tar.gz")), "replayd")
	server := outside.Address(t)
	engine := outside.Start(t, filepath.Join(t.TempDir(), "sim.out"), own, "sim", "--web.listen-address", server)
	engine.Ready(t, http.DefaultClient, "http://"+server+"/health")
	n := 0
	for _, archive := range archives {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(archive), "replayd-"+version+".linux-"), ".tar.gz")
		if name == runtime.GOARCH {
			continue
		}
		n++
		t.Run(name, func(t *testing.T) {
			emulator, err := exec.LookPath(emulators[name])
			if err != nil {
				outside.Missing(t, err, "Debian's package qemu-user has it")
			}
			dir := unpack(t, archive)
			c := exec.CommandContext(t.Context(), emulator, filepath.Join(dir, "replayd"), "run", filepath.Join(dir, "sample.jsonl"),
				"--url", "http://"+server, "--duration", "3s")
			c.Dir = t.TempDir()
			if said, err := c.CombinedOutput(); err != nil || !answered.Match(said) {
				t.Errorf("want requests that ended well, got %v\n%s", err, said)
			}
		})
	}
	if n == 0 {
		t.Error("want an archive for another processor")
	}
}
