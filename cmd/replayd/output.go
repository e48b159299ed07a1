package main

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"replayd/internal/terminal"
)

// errOutputClosed means that the reader of stdout has closed it, as with "| head -1".
var errOutputClosed = errors.New("stdout was closed")

// An output is stdout. The first write to a closed stdout calls closed. With onwards, the command goes on without
// stdout instead.
type output struct {
	file    io.Writer
	closed  func()
	onwards bool
	gone    atomic.Bool
}

func (o *output) Write(p []byte) (n int, err error) {
	if !o.gone.Load() {
		n, err = o.file.Write(p)
		if !errors.Is(err, syscall.EPIPE) {
			return n, err
		}
		if o.gone.Store(true); !o.onwards {
			o.closed()
		}
	}
	if o.onwards {
		return len(p), nil
	}
	return n, errOutputClosed
}

// outlive lets a command go on when stdout is closed, because it does more than print.
func (w *world) outlive() {
	if o, ok := w.data.(*output); ok {
		o.onwards = true
	}
}

// A stdout flushes stderr before each write, so that lines stay in order if both lead to the same place.
type stdout struct{ stderr *terminal.Backlog }

func (s stdout) Write(p []byte) (int, error) {
	s.stderr.Flush(100 * time.Millisecond)
	return os.Stdout.Write(p)
}
