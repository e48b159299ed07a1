package gpu

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"replayd/internal/secret"
)

const (
	maxOutput = 1 << 20 // bytes of nvidia-smi's output; 64 GPUs take 30 kB
	maxSaid   = 200     // bytes of nvidia-smi's message in an error

	// pipeWait is how long run waits for the pipes after the program has exited, because a child process may keep them
	// open.
	pipeWait = time.Second
)

var errOutput = fmt.Errorf("want at most %d bytes of output, got more", maxOutput)

// run returns the stdout of a program. It kills the program and its children when ctx is done or the output exceeds
// maxOutput.
func run(ctx context.Context, path string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var stdout, stderr limited
	stdout.full = func() { cancel(errOutput) }
	stderr.full = stdout.full

	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = kill
	cmd.WaitDelay = pipeWait
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		_ = kill() // kill the child that keeps the pipe open; the program's own output is complete
		err = nil
	}
	failed := (*exec.ExitError)(nil)
	switch {
	case err == nil:
		return stdout.bytes, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s: killed: %w", path, context.Cause(ctx))
	case errors.As(err, &failed) && failed.Exited():
		said := cmp.Or(firstLine(stderr.bytes), firstLine(stdout.bytes)) // nvidia-smi writes most errors to stdout
		if said == "" {
			return stdout.bytes, fmt.Errorf("%s: exit status %d, and no word", path, failed.ExitCode())
		}
		return stdout.bytes, fmt.Errorf("%s: exit status %d: %s", path, failed.ExitCode(), shorten(said))
	}
	return nil, fmt.Errorf("%s: %w", path, err)
}

// A limited buffer calls full when it would exceed maxOutput, and rejects the write. exec writes to it from one
// goroutine. bytes.Buffer does not fit: io.Copy would use its ReadFrom, without a bound.
type limited struct {
	bytes []byte
	full  func()
}

func (b *limited) Write(p []byte) (int, error) {
	if len(b.bytes)+len(p) > maxOutput {
		b.full()
		return 0, errOutput
	}
	b.bytes = append(b.bytes, p...)
	return len(p), nil
}

func firstLine(text []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.TrimSpace(line))
}

// shorten lets in a text of nvidia-smi for an error.
func shorten(s string) secret.Text { return secret.Set(nil).Text(s, maxSaid) }
