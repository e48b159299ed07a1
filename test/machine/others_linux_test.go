package machine

import (
	"os"
	"os/exec"
	"testing"
)

// What this process and its children use is its own: while they run, and after they have ended.
func TestOwnCPU(t *testing.T) {
	before, err := ownCPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("sh", "-c", "while :; do :; done")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	running := before
	for running < before+10 { // a tenth of a second of CPU
		if running, err = ownCPU(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	ended, err := ownCPU(os.Getpid())
	if err != nil || ended < running {
		t.Errorf("%d ticks with a child, %d after its end: %v", running, ended, err)
	}
	if _, err := othersCPU(); err != nil {
		t.Error(err)
	}
}
