//go:build real && release

package release_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

// suite is the release of Debian whose packages the machine has.
const suite = "trixie"

// A machine is a Debian system under a root folder, with its own systemd as process 1, in namespaces of its own. It has
// no network but its loopback interface, which is that of the test too.
type machine struct {
	root string
	pid  string // of its systemd, seen from outside
}

// bare makes the root of a machine that has nothing but Debian's essential packages, systemd, certificates and rpm. It is
// made once for a checkout.
func bare(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join(repository, ".cache", "machine", suite))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(root); err == nil {
		return root
	}
	debootstrap, err := exec.LookPath("mmdebstrap")
	if err != nil {
		outside.Missing(t, err, "Debian's package mmdebstrap makes the root of the machine")
	}
	made := root + ".new"
	if err := cmp.Or(os.RemoveAll(made), os.MkdirAll(filepath.Dir(root), 0o755)); err != nil {
		t.Fatal(err)
	}
	// Its mounts are of a namespace of its own, and end with it: where it is killed, none is left in the folder, which
	// is removed above.
	c := exec.CommandContext(t.Context(), "unshare", "--mount", debootstrap, "--quiet", "--mode=root", "--variant=apt",
		"--include=systemd-sysv,ca-certificates,rpm", `--aptopt=APT::Install-Recommends "false"`,
		"--dpkgopt=path-exclude=/usr/share/locale/*", "--dpkgopt=path-exclude=/usr/share/man/*", suite, made)
	if mirror := os.Getenv("DEBIAN_MIRROR"); mirror != "" {
		c.Args = append(c.Args, mirror)
	}
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("mmdebstrap: %v\n%s", err, said)
	}
	if err := os.Rename(made, root); err != nil {
		t.Fatal(err)
	}
	return root
}

// inside copies the bare root and runs the test again in a network and a mount namespace of its own. It returns nil in the
// first process. In the second it starts the machine and returns it.
func inside(t *testing.T) *machine {
	t.Helper()
	if root := os.Getenv("RELEASE_ROOT"); root != "" {
		outside.RaiseLoopback(t)
		m := &machine{root: root}
		m.boot(t)
		return m
	}
	outside.NeedRoot(t)
	root := filepath.Join(t.TempDir(), "root")
	if said, err := exec.CommandContext(t.Context(), "cp", "--archive", bare(t), root).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, said)
	}
	outside.Again(t, "RELEASE_ROOT="+root, "--mount", "--net", "--uts", "--ipc", "--cgroup")
	return nil
}

// start is run as process 1 of the machine: it mounts what a kernel and an init ramdisk would, and becomes systemd.
const start = `set -e
cd "$1"
mount --bind . .
cd "$1"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs tmpfs sys/fs/cgroup
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
for d in null zero full random urandom tty; do touch dev/$d; mount --bind /dev/$d dev/$d; done
mkdir dev/pts dev/shm dev/mqueue
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t mqueue mqueue dev/mqueue
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mkdir -p mnt/host
pivot_root . mnt/host
cd /
umount --lazy /mnt/host
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=multi-user.target
`

// boot starts the machine and waits until its systemd has started all.
func (m *machine) boot(t *testing.T) {
	t.Helper()
	// Neither has a place in a namespace: there is no console, and modules are the host's.
	for _, unit := range []string{"console-getty.service", "systemd-modules-load.service"} {
		if err := os.Symlink("/dev/null", filepath.Join(m.root, "etc/systemd/system", unit)); err != nil {
			t.Fatal(err)
		}
	}
	p := outside.Start(t, filepath.Join(t.TempDir(), "machine.out"), "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", start, "sh", m.root)
	children := fmt.Sprintf("/proc/%d/task/%[1]d/children", p.Cmd.Process.Pid)
	outside.Until(t, 3*time.Minute, func() error { // CI gives it the lowest priority, beside suites that measure
		text, err := os.ReadFile(children)
		if err != nil {
			return err
		}
		if m.pid = strings.TrimSpace(string(text)); m.pid == "" {
			return fmt.Errorf("%s: want the process of systemd", children)
		}
		if code, said := m.exec(t, "systemctl", "is-system-running"); code != 0 {
			return fmt.Errorf("want a machine that runs, got %s", said)
		}
		return nil
	})
}

// exec runs a command on the machine as root, to its end, and returns its exit code and its output.
func (m *machine) exec(t *testing.T, command ...string) (code int, said string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "nsenter", append([]string{
		"--all", "--target", m.pid, "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive",
	}, command...)...)
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), strings.TrimSpace(string(out))
}

// must runs a command that has to succeed and returns its output.
func (m *machine) must(t *testing.T, command ...string) string {
	t.Helper()
	code, said := m.exec(t, command...)
	if code != 0 {
		t.Fatalf("%s: want exit 0, got %d:\n%s", strings.Join(command, " "), code, said)
	}
	return said
}

// copy puts a file into the folder /root of the machine and returns its path there.
func (m *machine) copy(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join("/root", filepath.Base(from))
	if err := os.WriteFile(filepath.Join(m.root, to), []byte(read(t, from)), 0o644); err != nil {
		t.Fatal(err)
	}
	return to
}
