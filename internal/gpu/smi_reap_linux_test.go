package gpu

import (
	"errors"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// As PID 1, which gets the children that others leave behind, replayd leaves no zombies of nvidia-smi's.
func TestSMIsChildrenAreReaped(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }()
	readWithChild(t)
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if errors.Is(err, unix.ECHILD) {
			return
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
		runtime.Gosched() // there still is a child
	}
}
