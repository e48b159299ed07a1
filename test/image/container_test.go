//go:build real

// Package image_test builds the content of the image without a container engine, and runs it as an engine would: in a
// read-only root, as a user without rights, in a network of its own. It also checks files of deploy/ with the programs
// that read them. It is part of `make suite NAME=test-real` and needs root, promtool, amtool, Alertmanager (unpacked
// from Debian's packages) and systemd-analyze.
package image_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"replayd/test/outside"
)

const (
	repository = "../.."
	nobody     = "65532:65532"
	page       = "http://127.0.0.1:9797" // of the image's own command
)

// A container is a root folder, mounted read-only for the processes that the test starts in it.
type container struct {
	root string
	dir  string // for the output
	runs int
}

// inside runs the test again in its own network and mount namespace, and returns nil in this process. In the new
// process it returns the container with the image's files.
func inside(t *testing.T) *container {
	t.Helper()
	if root := os.Getenv("REPLAYD_IMAGE_ROOT"); root != "" {
		outside.RaiseLoopback(t)
		return &container{root: root, dir: t.TempDir()}
	}
	outside.NeedRoot(t)
	root := filepath.Join(t.TempDir(), "root")
	folder(t, root)
	assemble(t, root)
	outside.Again(t, "REPLAYD_IMAGE_ROOT="+root, "--mount", "--net")
	return nil
}

// mount mounts a file or a folder of this machine at a path of the container, read-only, like `-v FROM:TO:ro`.
func (c *container) mount(t *testing.T, from, to string) {
	t.Helper()
	from, err := filepath.Abs(from)
	if err != nil {
		t.Fatal(err)
	}
	at := c.place(t, from, to)
	c.must(t, unix.Mount(from, at, "", unix.MS_BIND, ""))
	c.must(t, unix.Mount("", at, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
}

// memory mounts an empty writable folder at a path of the container, with the mode and owner that the folder has in the
// image, like a new volume. So the image must have the folder.
func (c *container) memory(t *testing.T, to string) {
	t.Helper()
	at := filepath.Join(c.root, to)
	var s unix.Stat_t
	c.must(t, unix.Stat(at, &s))
	c.must(t, unix.Mount("tmpfs", at, "tmpfs", 0, fmt.Sprintf("mode=%o,uid=%d,gid=%d,size=64m", s.Mode&0o7777, s.Uid, s.Gid)))
}

// place creates the mount point that an engine would create.
func (c *container) place(t *testing.T, like, to string) string {
	t.Helper()
	at := filepath.Join(c.root, to)
	folder(t, filepath.Dir(at))
	info, err := os.Stat(like)
	if err != nil {
		t.Fatal(err)
	}
	if info.IsDir() {
		folder(t, at)
	} else if f, err := os.OpenFile(at, os.O_CREATE, 0o644); err != nil {
		t.Fatal(err)
	} else {
		f.Close()
	}
	return at
}

func (c *container) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// seal makes the root read-only. Later mounts need an existing mount point.
func (c *container) seal(t *testing.T) {
	t.Helper()
	c.must(t, unix.Mount(c.root, c.root, "", unix.MS_BIND|unix.MS_REC, ""))
	c.must(t, unix.Mount("", c.root, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
}

// arguments run a command in the container: with the environment of an engine, without rights and without new ones.
func (c *container) arguments(command []string) []string {
	return append([]string{
		"--no-new-privs", "env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"chroot", "--userspec=" + nobody, "--groups=65532", c.root,
	}, command...)
}

// start runs a command until the test ends.
func (c *container) start(t *testing.T, command ...string) *outside.Process {
	t.Helper()
	c.runs++
	return outside.Start(t, filepath.Join(c.dir, fmt.Sprintf("%d.out", c.runs)), "setpriv", c.arguments(command)...)
}

// exec runs a command to its end and returns its exit code and its output.
func (c *container) exec(t *testing.T, command ...string) (code int, said string) {
	t.Helper()
	p := exec.CommandContext(t.Context(), "setpriv", c.arguments(command)...)
	out, err := p.CombinedOutput()
	if p.ProcessState == nil {
		t.Fatal(err)
	}
	return p.ProcessState.ExitCode(), string(out)
}
