// Package records writes the file of finished requests: lines, ledgers between them, rotation, compression, repair.
package records

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"replayd/internal/measure"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	sinkFlush = time.Second // a record is in the file at most this much later
	sinkTell  = time.Minute // between ledgers
	sinkWake  = 256 << 10   // bytes waiting that are written without waiting for the second
	sinkBound = 4 << 20     // bytes waiting at most; what a disk does not take in time beyond them is lost and counted
	sinkSpare = 1 << 20     // bytes of a buffer that is used again; one that a slow disk let grow beyond is not
)

// What becomes of a record that is observed.
const (
	sinkOff   int32 = iota // records are off
	sinkOn                 // it is written
	sinkEnded              // it is lost
)

var errSinkEnded = errors.New("records: the sink has ended")

// A Sink writes a JSON object a line for each finished request, and now and then a LedgerLine for each workload. All fields of a
// request are always there, in this order:
//
//	id, loop, row, session           workload/loop/row as sent in X-Request-Id, and its parts; session "" for none
//	turn, phase, lane                which turn of its conversation, from 0; profiling, or warmup for one that counts in no
//	                                 figure; which lane of the workload carried it, from 0
//	outcome, error, status           how it ended; the error's text, "" when ok; the HTTP status, 0 when none came
//	finish_reason, retried           as the server says; whether it was sent a second time
//	planned_ns, due_ns, ready_ns, lane_ns, write_ns, head_ns, first_ns, last_ns, cancel_ns, end_ns
//	                                 instants of the wall clock, Unix time in ns, null when they did not come: planned, due,
//	                                 end of the session wait, lane taken, start of the write, head of the answer, first and
//	                                 last content, connection closed as the workload asked, finished
//	lateness_ns, lane_wait_ns, session_wait_ns, connect_ns
//	                                 durations in ns; null when it was not sent; connect null on a kept connection
//	ttft_ns, ttft_from_due_ns, second_token_ns, tpot_ns, e2e_ns, e2e_from_due_ns
//	                                 latencies in ns, null unless it ended ok and they are defined. They come from the
//	                                 monotonic clock: after a step of the wall clock they are right and
//	                                 differences of instants are not
//	chunks, events, merged_reads     content chunks, data events, reads that held more than one chunk
//	kernel_time                      whether chunk times are the kernel's receive stamps
//	whole                            whether one JSON answer was asked for and no stream: then there is no first content
//	input_tokens, output_tokens      lengths that the trace asked for, 0 when it did not say
//	overhead_tokens                  template tokens taken off the prompt
//	counted_input_tokens             tokens of the row's own text or messages by a tokenizer, 0 without one
//	usage_source                     usage, chunks, timings, text (a tokenizer's count), counted; "" when there was no answer
//	usage_prompt_tokens, usage_output_tokens, usage_cached_tokens, usage_reasoning_tokens
//
// The first and last instants of a request that failed tell how far it came.
//
// Ledgers tell what records cannot: what was expected and never sent. They stand at the head of every file that is opened, before its
// first record, then each minute, and at the end.
//
// The newest records are in PATH, older ones in PATH.1, still older ones in PATH.2 and so on; each of the old ones can be
// compressed instead, PATH.1.gz. A record is in one of them, whole, and they are in the order in which requests finished.
// All that there is, oldest first:
//
//	zcat -f $(ls -rv PATH PATH.[0-9]*)
//
// PATH.gz.tmp is a compression under way and no part of that. Where PATH.N and PATH.N.gz are both there a crash came
// between the end of the compression and the removal, and they hold the same. Every line ends with a newline; only after a
// crash the last one of PATH may be without, until a Sink opens it.
//
// A file that cannot be written costs records and nothing else. They are counted; the log says so once, and again, with
// their number, when records have been written for a minute without a failure. The file is tried again every few seconds.
type Sink struct {
	// Ledgers appends a LedgerLine for each workload; nil: there are none. It is set before Use, and called without a lock held that
	// Observe waits for.
	Ledgers func(b []byte) []byte

	lost    prometheus.Counter
	wake    chan struct{}
	rotated chan struct{} // there may be something to compress

	state   atomic.Int32  // changes under mu
	writing atomic.Int64  // bytes of the batch
	losses  atomic.Uint64 // what lost has counted

	mu      sync.Mutex // never held during disk operations
	pending []byte     // whole lines
	over    bool       // records were lost because too many waited

	disk    sync.Mutex // held during disk operations; taken before mu
	options Options
	ended   bool
	file    *recordFile // nil: it is not open
	headed  bool        // ledgers stand at the head of what was written since it was opened
	head    int64       // bytes of them, where nothing stands before them
	batch   []byte      // the lines taken last, as far as they are not written
	spare   []byte      // the buffer under the batch, pending's next one
	cut     bool        // the batch begins in the middle of a line: a pipe has taken the rest
	torn    bool        // that line was given up
	retry   time.Time   // a file that failed is not opened before
	err     error       // why the records taken last are not in the file; nil: they are
	failure failure
}

// NewSink makes a sink that wants no records until Use says where they go. It counts in lost the records that were not
// written whole.
func NewSink(lost prometheus.Counter, log *slog.Logger) *Sink {
	return &Sink{lost: lost, wake: make(chan struct{}, 1), rotated: make(chan struct{}, 1), failure: failure{log: log}}
}

// Use says where records go from now on; what was observed before goes to the file before. It may be called before Run and
// while it runs, from any goroutine, and waits for the disk. The same options again change nothing. An error says that the
// file cannot be opened: it is not logged here, and while the sink runs it tries again on its own.
func (s *Sink) Use(o Options) error {
	s.disk.Lock()
	defer s.disk.Unlock()
	if s.ended {
		return errSinkEnded
	}
	if o.Path != s.options.Path {
		s.Tell()
		s.drain(stateFor(o.Path, sinkOn))
		s.failure.end("records were lost", s.options.Path, s.losses.Load())
		s.err, s.torn = nil, false
	}
	s.options = o
	s.compressSoon()
	if o.Path == "" || s.file != nil {
		return nil
	}
	err := s.open()
	if err != nil {
		s.failure.known(err)
	}
	return err
}

// Observe takes the record of a finished request. It keeps nothing of r, never waits for the disk, and may be called from
// several goroutines at once. A record that comes before Run is written when it runs; one that comes after it is lost.
func (s *Sink) Observe(r *measure.Request) {
	s.Append(func(b []byte) []byte { return appendRecord(b, r) })
}

// Tell writes the ledgers as they are now, behind what was observed.
func (s *Sink) Tell() {
	if s.Ledgers == nil || s.state.Load() != sinkOn {
		return
	}
	told := s.Ledgers(nil)
	s.Append(func(b []byte) []byte { return append(b, told...) })
}

// Append is Observe for lines of another kind: add appends one to b, whole, with its newline. It is not called
// when records are off.
func (s *Sink) Append(add func(b []byte) []byte) {
	if s.state.Load() == sinkOff {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.state.Load() {
	case sinkOff:
		return
	case sinkEnded:
		s.lose(1)
		return
	}
	before := len(s.pending)
	s.pending = add(s.pending)
	if int64(len(s.pending))+s.writing.Load() > sinkBound {
		s.lose(recordsOf(s.pending[before:]))
		s.pending = s.pending[:before]
		s.over = true
		return
	}
	if len(s.pending) >= sinkWake {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// Lost is how many records were not written whole.
func (s *Sink) Lost() uint64 { return s.losses.Load() }

// Run writes what Observe took, until ctx is cancelled and the rest is written too; no request may finish after that. No
// failure of a file ends it. It returns why records were lost at its end. A compression that ctx cuts short is left to the
// next process. Run is called once.
func (s *Sink) Run(ctx context.Context) error {
	var compression sync.WaitGroup
	compression.Go(func() { s.compress(ctx) })
	defer compression.Wait()
	tick := time.NewTicker(sinkFlush)
	defer tick.Stop()
	tell := time.NewTicker(sinkTell)
	defer tell.Stop()
	for {
		select {
		case <-ctx.Done():
			return s.end()
		case <-tick.C:
		case <-tell.C:
			s.Tell()
		case <-s.wake:
		}
		s.flush()
	}
}

func (s *Sink) end() error {
	s.disk.Lock()
	defer s.disk.Unlock()
	s.ended = true
	s.retry = time.Time{}
	s.fillBatch(s.state.Load())
	s.write() // so that there is room for the ledgers
	s.Tell()
	s.drain(stateFor(s.options.Path, sinkEnded))
	losses := s.losses.Load()
	if s.err != nil && losses > s.failure.losses {
		return s.err
	}
	s.failure.end("records are written again", s.options.Path, losses)
	return nil
}

// stateFor is the state, unless no records are wanted.
func stateFor(path string, state int32) int32 {
	if path == "" {
		return sinkOff
	}
	return state
}

func (s *Sink) flush() {
	s.disk.Lock()
	defer s.disk.Unlock()
	s.fillBatch(s.state.Load())
	s.write()
}
