package gpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	maxOutput = 1 << 20 // bytes of nvidia-smi's output; 64 GPUs take 30 kB
	maxSaid   = 200     // bytes of its words in an error

	// How long a pipe is waited for once the program is gone, which a child of it may hold open.
	pipeWait = 100 * time.Millisecond
)

// An smiError is an nvidia-smi that ended with a status of its own.
type smiError struct {
	path   string
	status int
	said   string // the first line that it said, on stderr or else on stdout, where it says most things
}

func (e *smiError) Error() string {
	if e.said == "" {
		return fmt.Sprintf("%s: exit status %d, and no word", e.path, e.status)
	}
	return fmt.Sprintf("%s: exit status %d: %s", e.path, e.status, e.said)
}

var errOutput = fmt.Errorf("want at most %d bytes of output, got more", maxOutput)

// run gives what a program writes to stdout. It and its children are killed when ctx is done, or when that is too much.
func run(ctx context.Context, path string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var stdout, stderr bounded
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
		_ = kill() // the child that held the pipe; what the program itself wrote is all there
		err = nil
	}
	failed := (*exec.ExitError)(nil)
	switch {
	case err == nil:
		return stdout.bytes, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s: killed: %w", path, context.Cause(ctx))
	case errors.As(err, &failed) && failed.Exited():
		said := firstLine(stderr.bytes)
		if len(said) == 0 {
			said = firstLine(stdout.bytes)
		}
		return stdout.bytes, &smiError{path, failed.ExitCode(), shorten(string(said))}
	}
	return nil, fmt.Errorf("%s: %w", path, err)
}

// A bounded buffer tells when it is full, and takes no more. exec writes to it from one goroutine. It is no
// bytes.Buffer: io.Copy would fill that through ReadFrom, past the bound.
type bounded struct {
	bytes []byte
	full  func()
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if len(b.bytes)+len(p) > maxOutput {
		b.full()
		return 0, errOutput
	}
	b.bytes = append(b.bytes, p...)
	return len(p), nil
}

func firstLine(text []byte) []byte {
	line, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	return bytes.TrimSpace(line)
}

// shorten bounds what others say for an error of ours.
func shorten(s string) string {
	if len(s) <= maxSaid {
		return strings.ToValidUTF8(s, "�")
	}
	return strings.ToValidUTF8(s[:maxSaid], "�") + "…"
}
