package gpu

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"replayd/internal/secret"
)

const (
	maxOutput = 1 << 20 // bytes of nvidia-smi's output; 64 GPUs take 30 kB
	maxSaid   = 200     // bytes of nvidia-smi's message in an error
)

var errOutput = fmt.Errorf("want at most %d bytes of output, got more", maxOutput)

// run returns the stdout of a program. It kills the program and its children when ctx is done or the output exceeds
// maxOutput. What the program has written is read to the end, however late this process gets to it: no time limit but
// ctx's cuts it off.
func run(ctx context.Context, path string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = kill
	stdout, err := newOutput(cancel)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer stdout.close()
	stderr, err := newOutput(cancel)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer stderr.close()
	cmd.Stdout, cmd.Stderr = stdout.to, stderr.to
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	go stdout.read()
	go stderr.read()
	err = cmd.Wait()
	_ = kill() // children that it left behind; they may keep the pipes open
	go reap(cmd.Process.Pid)
	said, all := stderr.end(), stdout.end()
	failed, exited := exitOf(err)
	switch {
	case err == nil && !errors.Is(context.Cause(ctx), errOutput):
		return all, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s: killed: %w", path, context.Cause(ctx))
	case exited && failed.Exited():
		if word := cmp.Or(firstLine(said), firstLine(all)); word != "" { // nvidia-smi writes most errors to stdout
			return all, fmt.Errorf("%s: %w: %s", path, failed, shorten(word))
		}
		return all, fmt.Errorf("%s: %w, and no word", path, failed)
	}
	return nil, fmt.Errorf("%s: %w", path, err)
}

// reap takes the exit statuses of what is left of a process group. Only where this process is PID 1, as in a container,
// are the children of others its own; nobody else would take them.
func reap(group int) {
	for {
		if _, err := syscall.Wait4(-group, nil, 0, nil); err != nil && !errors.Is(err, syscall.EINTR) {
			return // ECHILD: there are none
		}
	}
}

// exitOf returns how a program exited, from an error of run.
func exitOf(err error) (*exec.ExitError, bool) { return errors.AsType[*exec.ExitError](err) }

// An output is a pipe from a program, and what came through it.
type output struct {
	from, to *os.File
	full     context.CancelCauseFunc
	done     chan struct{}
	bytes    []byte
}

// newOutput returns a pipe. Its reader calls full if too much comes through it.
func newOutput(full context.CancelCauseFunc) (*output, error) {
	from, to, err := os.Pipe()
	return &output{from: from, to: to, full: full, done: make(chan struct{})}, err
}

// read reads until the end of the pipe, or until end.
func (o *output) read() {
	defer close(o.done)
	room := make([]byte, 4096)
	for {
		n, err := o.from.Read(room)
		if !o.add(room[:n]) || err != nil {
			return
		}
	}
}

// add keeps bytes. It calls full and returns false if there are too many.
func (o *output) add(some []byte) bool {
	if len(o.bytes)+len(some) > maxOutput {
		o.full(errOutput)
		return false
	}
	o.bytes = append(o.bytes, some...)
	return true
}

// end returns all that the program has written. The program has ended, so it is in the pipe, whoever else holds it open.
func (o *output) end() []byte {
	_ = o.from.SetReadDeadline(time.Now()) // read returns, perhaps before it has come to read anything
	<-o.done
	_ = o.from.SetReadDeadline(time.Time{})
	pipe, err := o.from.SyscallConn()
	if err != nil {
		return o.bytes
	}
	room := make([]byte, 4096)
	_ = pipe.Read(func(fd uintptr) bool { // of a pipe from os.Pipe, so it does not block
		for {
			n, err := syscall.Read(int(fd), room)
			if n <= 0 && !errors.Is(err, syscall.EINTR) || !o.add(room[:max(n, 0)]) {
				return true
			}
		}
	})
	return o.bytes
}

// close closes both ends.
func (o *output) close() {
	_, _ = o.from.Close(), o.to.Close()
}

func firstLine(text []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.TrimSpace(line))
}

// shorten lets in a text of nvidia-smi for an error.
func shorten(s string) secret.Text { return secret.Set(nil).Text(s, maxSaid) }
