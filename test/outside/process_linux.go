package outside

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel end a program whose test was killed and could not.
func dieWithParent(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
