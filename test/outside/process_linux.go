package outside

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel end the program if the test is killed.
func dieWithParent(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
