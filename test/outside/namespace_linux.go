package outside

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// NeedRoot skips the test without root.
func NeedRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		Missing(t, exec.ErrNotFound, "only root can give files to others and change its root")
	}
}

// Again runs the test once more in new namespaces, by flags of unshare, with a variable in its environment.
func Again(t *testing.T, variable string, flags ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "unshare", append(flags, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=5m")...)
	c.Env = append(os.Environ(), variable)
	said, err := c.CombinedOutput()
	t.Logf("in a namespace of its own:\n%s", said)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(said), "--- PASS: "+t.Name()) {
		t.Fatal("want the test to have run in its namespace")
	}
}

// RaiseLoopback sets the flag IFF_UP of lo in the new network, as in netdevice(7).
func RaiseLoopback(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	request := struct {
		name  [unix.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}{name: [unix.IFNAMSIZ]byte{'l', 'o'}, flags: unix.IFF_UP}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); errno != 0 {
		t.Fatalf("lo up: %v", errno)
	}
}
