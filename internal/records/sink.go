// Package records writes the file of finished requests with ledgers, rotation, compression and repair after a crash.
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
	sinkFlush = time.Second // maximum delay of a record
	sinkTell  = time.Minute // interval of ledgers
	sinkWake  = 256 << 10   // pending bytes that trigger a write before sinkFlush
	sinkBound = 4 << 20     // maximum pending bytes; more records are lost and counted if the disk is too slow
	sinkSpare = 1 << 20     // maximum capacity of a buffer that is reused
)

// The states of a sink: the fate of an observed record.
const (
	sinkOff   int32 = iota // records are disabled
	sinkOn                 // the record is written
	sinkEnded              // the record is lost
)

var errSinkEnded = errors.New("records: the sink has ended")

// A Sink writes one JSON line per finished request, and from time to time a LedgerLine per workload. Every record has all
// fields: docs/reference/file-formats.md lists them in their order, with units. For a failed request, the first and last
// content times show how far it got.
//
// Ledgers report what records cannot: requests that were expected but never sent. They are written before the first
// record of every opened file, every minute, and at the end.
//
// The newest records are in PATH, older ones in PATH.1, PATH.2 and so on. A rotated file can be compressed: PATH.1.gz.
// Each record is in exactly one file, and records are in the order in which requests finished. This command reads all
// records, oldest first:
//
//	zcat -f $(ls -rv PATH PATH.[0-9]*)
//
// PATH.gz.tmp is a compression in progress; ignore it. If PATH.N and PATH.N.gz both exist, a crash happened between the
// compression and the removal, and both have the same content. Every line ends with a newline. After a crash, the last
// line of PATH can lack it until a Sink opens the file.
//
// If the file cannot be written, only records are lost. They are counted. The log reports the failure once, and its
// end, with the number of lost records, after records have been written for a minute without a failure. The Sink
// reopens the file every few seconds.
type Sink struct {
	// Ledgers appends a LedgerLine for each workload; nil: no ledgers. Set it before Use. The Sink calls it without
	// holding a lock for which Observe waits.
	Ledgers func(b []byte) []byte

	lost    prometheus.Counter
	wake    chan struct{}
	rotated chan struct{} // wakes compress

	state   atomic.Int32  // changes under mu
	writing atomic.Int64  // bytes of the batch
	losses  atomic.Uint64 // number of lost records

	mu      sync.Mutex // never held during disk operations
	pending []byte     // whole lines
	over    bool       // records were lost because too many were pending

	disk    sync.Mutex // held during disk operations; taken before mu
	options Options
	ended   bool
	file    *recordFile // nil: not open
	headed  bool        // ledgers have been written since the file was opened
	head    int64       // bytes of these ledgers at the beginning of the file
	batch   []byte      // the unwritten rest of the lines taken from pending
	spare   []byte      // the buffer of the batch, reused for pending
	cut     bool        // the batch begins inside a line whose beginning a pipe has accepted
	torn    bool        // that line was lost
	retry   time.Time   // after a failure, the file is not opened before this time
	err     error       // error of the last write; nil: it succeeded
	failure failure
}

// NewSink returns a sink that ignores records until Use is called. It counts lost records in lost.
func NewSink(lost prometheus.Counter, log *slog.Logger) *Sink {
	return &Sink{lost: lost, wake: make(chan struct{}, 1), rotated: make(chan struct{}, 1), failure: failure{log: log}}
}

// Use changes the options; records observed earlier go to the earlier file. It blocks on the disk and may be called
// from any goroutine, before and during Run. Repeating the same options has no effect. An error means that the file
// cannot be opened. Use does not log it, and a running sink keeps trying to open the file.
func (s *Sink) Use(o Options) error {
	s.disk.Lock()
	defer s.disk.Unlock()
	if s.ended {
		return errSinkEnded
	}
	if o.Path != s.options.Path {
		s.WriteLedgers()
		s.drain(stateFor(o.Path, sinkOn))
		s.failure.end("records were lost", s.options.Path, s.losses.Load())
		s.err, s.torn = nil, false
	}
	s.options = o
	wake(s.rotated)
	if o.Path == "" || s.file != nil {
		return nil
	}
	err := s.open()
	if err != nil {
		s.failure.known(err)
	}
	return err
}

// Observe writes the record of a finished request. It keeps no reference to r, does not block on the disk, and is safe
// for concurrent use. Records observed before Run are written by Run; records observed after it are lost.
func (s *Sink) Observe(r *measure.Request) {
	s.Append(func(b []byte) []byte { return appendRecord(b, r) })
}

// WriteLedgers writes the current ledgers after the records observed so far.
func (s *Sink) WriteLedgers() {
	if s.Ledgers == nil || s.state.Load() != sinkOn {
		return
	}
	lines := s.Ledgers(nil)
	s.Append(func(b []byte) []byte { return append(b, lines...) })
}

// Append writes a line of another kind, like Observe: add appends the whole line with its newline to b. Append does not
// call add if records are disabled.
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
		wake(s.wake)
	}
}

// wake wakes the reader of a channel with room for one.
func wake(reader chan<- struct{}) {
	select {
	case reader <- struct{}{}:
	default:
	}
}

// Lost returns the number of lost records.
func (s *Sink) Lost() uint64 { return s.losses.Load() }

// Run writes the observed records until ctx is cancelled, then the rest; no request may finish after that. Failures of
// the file do not end Run. It returns an error if records were lost at the end. The next process repeats a compression
// that ctx interrupts. Run may be called only once.
func (s *Sink) Run(ctx context.Context) error {
	var compression sync.WaitGroup
	compression.Go(func() { s.compress(ctx) })
	defer compression.Wait()
	tick := time.Tick(sinkFlush)
	ledgers := time.Tick(sinkTell)
	for {
		select {
		case <-ctx.Done():
			return s.end()
		case <-tick:
		case <-ledgers:
			s.WriteLedgers()
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
	s.write() // makes room for the ledgers
	s.WriteLedgers()
	s.drain(stateFor(s.options.Path, sinkEnded))
	losses := s.losses.Load()
	if s.err != nil && losses > s.failure.losses {
		return s.err
	}
	s.failure.end("records are written again", s.options.Path, losses)
	return nil
}

// stateFor returns state, or sinkOff if path is empty.
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
