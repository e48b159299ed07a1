package measure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	sinkFlush = time.Second // a record is in the file at most this much later
	sinkWake  = 256 << 10   // bytes waiting that are written without waiting for the second
	sinkBound = 4 << 20     // bytes waiting at most; what a disk does not take in time beyond them is lost and counted
)

var errSinkEnded = errors.New("records: the sink has ended")

// A Sink writes a JSON object a line for each finished request. All fields are always there, in this order:
//
//	id, loop, row, session           workload/loop/row as sent in X-Request-Id, and its parts; session "" for none
//	outcome, error, status           how it ended; the error in words, "" when ok; the HTTP status, 0 when none came
//	finish_reason, retried           as the server says; whether it was sent a second time
//	planned_ns, due_ns, ready_ns, lane_ns, write_ns, first_ns, last_ns, end_ns
//	                                 instants of the wall clock, Unix time in ns, null when they did not come: planned, due,
//	                                 end of the session wait, lane taken, start of the write, first and last content, finished
//	lateness_ns, lane_wait_ns, session_wait_ns, connect_ns
//	                                 durations in ns; null when it was not sent; connect null on a kept connection
//	ttft_ns, ttft_from_due_ns, tpot_ns, e2e_ns, e2e_from_due_ns
//	                                 latencies in ns, null unless it ended ok and they are defined. They come from the
//	                                 monotonic clock: after a step of the wall clock they are right and
//	                                 differences of instants are not
//	chunks, events, merged_reads     content chunks, data events, reads that held more than one chunk
//	kernel_time                      whether chunk times are the kernel's receive stamps
//	input_tokens, output_tokens      lengths that the trace asked for, 0 when it did not say
//	overhead_tokens                  template tokens taken off the prompt
//	usage_source                     usage, chunks, timings, counted; "" when there was no answer
//	usage_prompt_tokens, usage_output_tokens, usage_cached_tokens, usage_reasoning_tokens
//
// The first and last instants of a request that failed tell how far it came.
type Sink struct {
	w    io.Writer
	lost prometheus.Counter
	wake chan struct{}

	mu      sync.Mutex
	pending []byte // whole lines
	err     error  // the first failure; nothing is written after it
}

// NewSink makes a sink that writes to w while Run runs and counts in lost the records that were not written whole.
// It does not close w.
func NewSink(w io.Writer, lost prometheus.Counter) *Sink {
	return &Sink{w: w, lost: lost, wake: make(chan struct{}, 1)}
}

// Observe takes the record of a finished request. It keeps nothing of r, never waits for the disk, and may be called from
// several goroutines at once. A record that comes before Run is written when it runs; one that comes after it is lost.
func (s *Sink) Observe(r *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		s.lost.Inc()
		return
	}
	before := len(s.pending)
	s.pending = appendRecord(s.pending, r)
	if len(s.pending) > sinkBound {
		s.pending = s.pending[:before]
		s.lost.Inc()
		return
	}
	if len(s.pending) >= sinkWake {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// Run writes what Observe took, until ctx is cancelled and the rest is written too; no request may finish after that.
// A write that fails ends the writing but not Run, so that a full disk does not stop a replay: every later record is
// lost and counted, and the failure is returned at the end. Run is called once.
func (s *Sink) Run(ctx context.Context) error {
	tick := time.NewTicker(sinkFlush)
	defer tick.Stop()
	var spare []byte
	for last := false; !last; {
		select {
		case <-ctx.Done():
			last = true
		case <-tick.C:
		case <-s.wake:
		}
		spare = s.flush(spare)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return fmt.Errorf("records: %w", s.err)
	}
	s.fail(errSinkEnded, nil)
	return nil
}

// flush writes the waiting lines, while new ones gather in spare, and returns their buffer to be the next spare.
func (s *Sink) flush(spare []byte) []byte {
	s.mu.Lock()
	lines := s.pending
	s.pending = spare[:0]
	s.mu.Unlock()
	if len(lines) == 0 {
		return lines
	}
	if n, err := s.w.Write(lines); err != nil {
		s.mu.Lock()
		s.fail(err, lines[n:])
		s.mu.Unlock()
	}
	return lines
}

// fail ends the sink. A line whose end was not written is lost.
func (s *Sink) fail(err error, unwritten []byte) {
	s.err = err
	s.lost.Add(float64(bytes.Count(unwritten, []byte{'\n'}) + bytes.Count(s.pending, []byte{'\n'})))
	s.pending = nil
}
