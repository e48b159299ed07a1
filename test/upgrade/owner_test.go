package upgrade_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"replayd/test/outside"
)

// A contender is a daemon that wants the state file of another one.
type contender struct {
	*exec.Cmd
	ended chan error

	mu   sync.Mutex
	said bytes.Buffer
}

func (c *contender) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said.Write(p)
}

// says waits for a text in the log.
func (c *contender) says(t *testing.T, text string) {
	t.Helper()
	outside.Until(t, 20*time.Second, func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !strings.Contains(c.said.String(), text) {
			return fmt.Errorf("want %q in the log, got %s", text, c.said.String())
		}
		return nil
	})
}

// ends waits for the exit code.
func (c *contender) ends(t *testing.T) int {
	t.Helper()
	select {
	case err := <-c.ended:
		t.Log(err)
	case <-time.After(20 * time.Second):
		t.Fatal("want it to end")
	}
	return c.ProcessState.ExitCode()
}

// contend starts a daemon in a folder. It waits for the state as long as its drain.
func contend(t *testing.T, folder, drain string) *contender {
	t.Helper()
	c := &contender{Cmd: exec.Command(binary, "serve", "--config", "replayd.yaml", "--web.listen-address", "127.0.0.1:0"), ended: make(chan error, 1)}
	c.Dir, c.Stdout, c.Stderr, c.Env = folder, c, c, append(os.Environ(), "REPLAYD_DRAIN="+drain)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		c.ended <- c.Wait()
		close(over)
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill() // it may have ended
		<-over
	})
	return c
}

// A state file has one daemon. A second one waits for the first to drain, says who has the file and gives up; a kill frees the file.
func TestOneDaemonHasTheState(t *testing.T) {
	t.Parallel()
	folder := copied(t, latest(t))
	first := contend(t, folder, "1s")
	first.says(t, "the comparison goes on with its kept evidence")

	refused := contend(t, folder, "100ms")
	if code := refused.ends(t); code != 1 {
		t.Errorf("want the exit code 1, got %d", code)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	refused.says(t, fmt.Sprintf("want a file that no other replayd uses, got that of pid %d on %s since ", first.Process.Pid, host))

	stopped := contend(t, folder, "10m")
	stopped.says(t, "another process uses the state file: waiting for its end")
	if err := stopped.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := stopped.ends(t); code != 0 {
		t.Errorf("stopped while it waits: want the exit code 0, got %d", code)
	}

	next := contend(t, folder, "10m")
	next.says(t, "another process uses the state file: waiting for its end")
	if err := first.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	first.ends(t)
	next.says(t, "the comparison goes on with its kept evidence")
	if err := next.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := next.ends(t); code != 0 {
		t.Errorf("want the exit code 0, got %d", code)
	}
	if text, err := os.ReadFile(filepath.Join(folder, "state.json.lock")); len(text) > 0 || err != nil {
		t.Errorf("want nobody in the lock file, got %q, %v", text, err)
	}
}
